"""The control words of RTF: destinations without text, characters and encodings."""

import codecs

from cragside.adapters.documents.raised import LOWERED, RAISED

# Groups whose text is not that of the document. Those that begin with `\\*` are skipped in any case.
SKIPPED = frozenset(
    {
        "aftncn", "aftnsep", "aftnsepc", "annotation", "atnauthor", "atndate", "atnicn", "atnid", "atnparent",
        "atnref", "atntime", "atrfend", "atrfstart", "author", "background", "bkmkend", "bkmkstart", "buptim",
        "category", "colortbl", "comment", "company", "creatim", "datastore", "do", "doccomm", "dptxbxtext",
        "file", "filetbl", "fldinst", "fldtype", "footer", "footerf", "footerl", "footerr", "ftncn", "ftnsep",
        "ftnsepc", "generator", "header", "headerf", "headerl", "headerr", "hlinkbase", "info", "keycode",
        "keywords", "latentstyles", "linkval", "listname", "listoverride", "listoverridetable", "listtable",
        "manager", "mmathPict", "mmathPr", "nextfile", "nonesttables", "objclass", "objdata", "object",
        "objname", "operator", "pict", "pn", "printim", "private", "propname", "result", "revtbl", "revtim",
        "rsidtbl", "rxe", "shp", "shpgrp", "shprslt", "shptxt", "sn", "sp", "staticval", "stylesheet",
        "subject", "sv", "tc", "template", "themedata", "title", "txe", "ud", "userprops", "windowcaption",
        "xe", "xmlnstbl",
    }
)  # fmt: skip
# Words that are text.
SPOKEN = {
    "par": "\n", "sect": "\n\n", "page": "\n\n", "column": "\n", "line": "\n", "lbr": "\n", "tab": "\t", "row": "\n",
    "nestrow": "\n", "cell": "|", "nestcell": "|", "emdash": "—", "endash": "–", "emspace": "\u2003",
    "enspace": "\u2002", "qmspace": "\u2005", "bullet": "•", "lquote": "‘", "rquote": "’", "ldblquote": "“",
    "rdblquote": "”", "zwj": "\u200d", "zwnj": "\u200c",
}  # fmt: skip
SHIFTS = {"super": RAISED, "up": RAISED, "sub": LOWERED, "dn": LOWERED, "nosupersub": ""}
# Symbols behind a backslash that are text. An optional hyphen is none: it is not seen.
SYMBOLS = {"~": "\xa0", "_": "\u2011", "{": "{", "}": "}", "\\": "\\", "\t": "\t"}
_CHARSETS = {
    0: "cp1252", 77: "mac_roman", 78: "cp932", 79: "cp950", 80: "cp949", 83: "mac_greek", 84: "mac_cyrillic",
    85: "cp936", 88: "cp874", 89: "mac_latin2", 128: "cp932", 129: "cp949", 130: "johab", 134: "cp936", 136: "cp950",
    161: "cp1253", 162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251",
    222: "cp874", 238: "cp1250", 254: "cp437", 255: "cp850",
}  # fmt: skip
_PAGES = {
    "mac": "mac_roman", "pc": "cp437", "pca": "cp850", 10000: "mac_roman", 10006: "mac_greek", 10007: "mac_cyrillic",
    10029: "mac_latin2", 10081: "mac_turkish", 1361: "johab", 65001: "utf-8", 20866: "koi8_r", 21866: "koi8_u",
    54936: "gb18030", 20127: "ascii", 50220: "iso2022_jp", 51932: "euc_jp", 51949: "euc_kr",
    **{28590 + part: f"iso8859_{part}" for part in (*range(1, 10), 13, 15)},
}  # fmt: skip


def font_encoding(charset: int) -> str:
    """The encoding of a font with this character set, "" if the file's own holds."""
    return _CHARSETS.get(charset, "")


def code_page(page: int | str | None) -> str:
    """The name of a code page's encoding, "" for none that is known."""
    name = _PAGES.get(page, f"cp{page}") if page is not None else ""
    try:
        # A name such as `cp65000` may be that of no encoding of text.
        return name if codecs.lookup(name).name and b"a".decode(name) else ""
    except (LookupError, UnicodeError):
        return ""
