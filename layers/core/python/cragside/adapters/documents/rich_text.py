"""Reads RTF as plain text, also where Outlook has packed it. Runs in a child process."""

import codecs
import re
import struct
from dataclasses import dataclass

from cragside.adapters.documents.inline_text import LEVEL, LOWERED, RAISED, end_link, field_target, leveled
from cragside.adapters.documents.reading import MAX_CHARACTERS, FileOrigin, Reading, Unreadable

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
    """Return the encoding of a font with this character set, "" if the file's own holds."""
    return _CHARSETS.get(charset, "")


def code_page(page: int | str | None) -> str:
    """Return the name of a code page's encoding, "" for none that is known."""
    name = _PAGES.get(page, f"cp{page}") if page is not None else ""
    try:
        # A name such as `cp65000` may be that of no encoding of text.
        return name if codecs.lookup(name).name and b"a".decode(name) else ""
    except (LookupError, UnicodeError):
        return ""


# A control word with its number, a byte in hexadecimal digits, another control symbol, a brace, or text.
_PART = re.compile(
    r"\\([a-zA-Z]{1,32})(-?\d{1,20})?\d*+ ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])|([^\\{}\r\n\x00]+)|[\r\n\x00]+|\\",
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_DESTINATIONS = SKIPPED | {"field", "fldrslt", "footnote", "upr", "fonttbl"}
_MOST_GROUPS = 10_000


@dataclass(slots=True)
class _Group:
    """The state of a group, which groups in it inherit. Without a `sink` for pieces of text, it is skipped."""

    sink: list[str] | None
    encoding: str = "cp1252"
    hidden: bool = False
    skip: int = 1  # characters behind one in Unicode, for readers that do not know it
    fonts: bool = False
    asked: list[str] | None = None  # the pieces of a field's instruction
    around: list[str] | None = None  # the sink around text that comes twice
    shift: str = ""  # the mark of raised or lowered text
    # Of the group alone: the number of pieces before it as the result of a field, and whether it is a note.
    result: int | None = None
    note: str = ""

    def inner(self) -> "_Group":
        """Return a group in this one."""
        # Files have a million groups, and `dataclasses.replace` takes three times as long.
        return _Group(self.sink, self.encoding, self.hidden, self.skip, self.fonts, self.asked, self.around, self.shift)


def read(content: bytes, origin: FileOrigin) -> Reading:
    """Return the text. Raises `Unreadable` for files that are not RTF."""
    if not content.lstrip()[:5] == b"{\\rtf":
        raise Unreadable("is damaged, or no rich text (.rtf)")
    text = _Reader().text(content.decode("latin-1"))
    if len(text) > MAX_CHARACTERS:
        raise Unreadable(f"holds more than {MAX_CHARACTERS:,} characters of text, which is the limit")
    return Reading(text)


class _Reader:
    """Reads one file. Bytes wait until their encoding ends, because a letter may have several."""

    def __init__(self) -> None:
        self._out: list[str] = []
        self._group = _Group(self._out)
        self._groups: list[_Group] = []
        self._fonts: dict[int, str] = {}
        self._font = 0
        self._default = "cp1252"
        self._bytes = bytearray()
        self._left = 0
        self._starred = False
        self._notes: list[str] = []
        self._counts: dict[str, int] = {}

    def text(self, written: str) -> str:
        """Return the text of the file, which ends with its outermost group."""
        at = 0
        while found := _PART.match(written, at):
            at = found.end()
            word, number, code, symbol, brace, plain = found.groups()
            if plain is not None:
                self._plain(plain.encode("latin-1"))
            elif code is not None:
                self._plain(bytes.fromhex(code))
            elif brace is not None:
                self._flush()
                self._left = 0
                self._open() if brace == "{" else self._close()
                if not self._groups:
                    break
            elif symbol is not None:
                self._symbol(symbol)
            elif word == "bin":
                at = min(at + max(int(number or 0), 0), len(written))
            elif word is not None:
                self._word(word, int(number) if number else None)
        self._flush()
        self._write_notes()
        text = leveled("".join(self._out))
        if _SURROGATE.search(text):
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text

    def _plain(self, plain: bytes) -> None:
        skipped = min(self._left, len(plain))
        self._left -= skipped
        if self._group.sink is not None and not self._group.hidden:
            self._bytes += plain[skipped:]

    def _flush(self) -> None:
        if self._bytes and self._group.sink is not None:
            self._group.sink.append(self._marked(self._bytes.decode(self._group.encoding, "replace")))
        self._bytes.clear()

    def _write(self, text: str) -> None:
        self._flush()
        if self._group.sink is not None and not self._group.hidden:
            self._group.sink.append(text)

    def _marked(self, text: str) -> str:
        return f"{self._group.shift}{text}{LEVEL}" if self._group.shift else text

    def _open(self) -> None:
        if len(self._groups) > _MOST_GROUPS:
            raise Unreadable(f"is nested more than {_MOST_GROUPS:,} groups deep, which is the limit")
        self._groups.append(self._group)
        self._group = self._group.inner()
        self._starred = False

    def _close(self) -> None:
        ended = self._group
        if self._groups:
            self._group = self._groups.pop()
        if ended.result is not None and ended.asked is not None and ended.sink is not None:
            end_link(ended.sink, ended.result, field_target("".join(ended.asked)))
        if ended.note and ended.sink is not None and (text := " ".join("".join(ended.sink).split())):
            self._counts[ended.note] = self._counts.get(ended.note, 0) + 1
            self._notes.append(f"{ended.note} {self._counts[ended.note]}: {text}")

    def _symbol(self, symbol: str) -> None:
        self._left = 0
        if symbol == "*":
            self._starred = True
        elif symbol in "\r\n":
            self._word("par", None)
        elif symbol in SYMBOLS:
            self._write(SYMBOLS[symbol])

    def _word(self, word: str, number: int | None) -> None:
        starred, self._starred = self._starred, False
        self._left = 0
        if word == "u":
            self._unicode(number)
        elif word in _DESTINATIONS or (starred and word != "nesttableprops"):
            # The properties of a nested table hold the ends of its rows.
            self._flush()
            self._enter(word)
        elif word in SPOKEN:
            if word in ("par", "sect", "page", "row") and self._group.sink is self._out:
                self._write_notes()
            self._write(SPOKEN[word])
        else:
            self._flush()
            self._set(word, number)

    def _unicode(self, number: int | None) -> None:
        code = (number or 0) + (0x10000 if number is not None and number < 0 else 0)
        if number is not None:
            self._write(self._marked(chr(code) if 0 < code < 0x110000 else "\ufffd" if code else ""))
        self._left = self._group.skip

    def _enter(self, word: str) -> None:
        """Begin a destination. Those that are not known are skipped."""
        group = self._group
        if word == "field":
            group.asked = []
        elif word == "fldinst" and group.asked is not None and group.sink is not None:
            group.sink = group.asked
        elif word == "fldrslt":
            group.result = len(group.sink) if group.sink is not None else None
        elif word == "footnote" and group.sink is self._out and not group.hidden:
            group.note, group.sink = "Footnote", []
        elif word == "upr":
            # The same text twice, then in Unicode.
            group.around, group.sink = group.sink, None
        elif word == "ud":
            group.sink = group.around
        else:
            group.fonts = word == "fonttbl"
            group.sink = None

    def _set(self, word: str, number: int | None) -> None:
        """Follow a control word that changes the state. Others have no meaning for the text."""
        group = self._group
        if word in ("v", "deleted", "webhidden"):
            group.hidden = number != 0
        elif word == "plain":
            group.hidden, group.encoding, group.shift = False, self._default, ""
        elif word in SHIFTS:
            group.shift = SHIFTS[word] if number != 0 else ""
        elif word == "uc":
            group.skip = max(number if number is not None else 1, 0)
        elif word == "f" and number is not None:
            self._font = number
            group.encoding = self._fonts.get(number, self._default)
        elif word in ("fcharset", "cpg") and group.fonts and number is not None:
            if encoding := font_encoding(number) if word == "fcharset" else code_page(number):
                self._fonts[self._font] = encoding
        elif word in ("ansicpg", "mac", "pc", "pca"):
            self._default = group.encoding = code_page(number if word == "ansicpg" else word) or "cp1252"
        elif word == "ftnalt" and group.note:
            group.note = "Endnote"

    def _write_notes(self) -> None:
        """Write the notes below the paragraph that refers to them."""
        self._flush()
        for note in self._notes:
            self._out.append(f"\n{note}")
        self._notes.clear()


_PACKED, _PLAIN = b"LZFu", b"MELA"
_WINDOW = 4096
_LEAST_COPIED = 2
_MOST_BYTES = 20 * 1024 * 1024
# Text that each message is taken to begin with, so that it can be referred to.
_KNOWN = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor "
    rb"MS Sans SerifSymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0"
    b"\r\n"
    rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)


def unpacked(content: bytes) -> bytes:
    """Return the rich text. Raises `Unreadable` if it is damaged or too long."""
    try:
        _, size, form = struct.unpack_from("<II4s", content)
    except struct.error:
        raise Unreadable("has a damaged text") from None
    if size > _MOST_BYTES:
        raise Unreadable(f"has a text of more than {_MOST_BYTES:,} bytes, which is the limit")
    if form == _PLAIN:
        return content[16 : 16 + size]
    if form != _PACKED:
        raise Unreadable("has a damaged text")
    # Places count from the beginning of the known text, and 4,096 of them are in reach.
    out, at, end = bytearray(_KNOWN), 16, len(_KNOWN) + size
    while at < len(content) and len(out) < end:
        flags, at = content[at], at + 1
        for bit in range(8):
            if at >= len(content) or len(out) >= end:
                break
            if not flags >> bit & 1:
                out.append(content[at])
                at += 1
                continue
            place = int.from_bytes(content[at : at + 2], "big")
            at += 2
            back = (len(out) - (place >> 4)) % _WINDOW
            if not back:  # a reference to the next place ends the text
                return bytes(out[len(_KNOWN) :])
            if back > len(out):
                raise Unreadable("has a damaged text")
            for _ in range((place & 0xF) + _LEAST_COPIED):
                out.append(out[-back])
    return bytes(out[len(_KNOWN) : end])
