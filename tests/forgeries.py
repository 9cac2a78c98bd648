"""Rules of a generous reader for text that looks like a heading or a delimiter of ours."""

import re
import unicodedata

# In any script: the first thing on the line, signs aside, is a number in brackets.
_SIGNS = re.compile(r"[^\w\n]*?[\[【〔〖「『⦋❲〘〚⟬⸢⌈{<«][\W_]{0,8}\d+[\W_]{0,8}[\]】〕〗」』⦌❳〙〛⟭⸣⌉}>»]")
_OUR_TAIL = re.compile(r"\((?:[^()]*, )?(?:local|web)(?:, relevance [\d.]+)?\)")


def lines_that_look_like_headings(text: str) -> list[str]:
    """The lines, with compatible forms alike, digits of all scripts as 0 to 9, invisible characters and marks gone."""
    plain = "".join(
        str(unicodedata.digit(each)) if unicodedata.digit(each, None) is not None else each
        for each in unicodedata.normalize("NFKD", text)
        if unicodedata.category(each) not in ("Cf", "Mn", "Me", "Cc") or each in "\n\r\x0b\x0c\x85"
    )
    lines = re.split(r"[\n\r\x0b\x0c\x85\u2028\u2029]|<br>", plain)
    bare = [re.sub(r"^(?:</?\w[^<>]*>|\d+[.)]|[a-z][.)]|[^\w\[<{«])+", "", line.strip()) for line in lines]
    return [line for line, rest in zip(lines, bare, strict=True) if _SIGNS.match(rest) or _OUR_TAIL.search(line)]


def delimiters(text: str, names: str = "evidence") -> list[str]:
    """Match the beginning of a delimiter; `names` are words with bars between them."""
    plain = "".join(
        each
        for each in unicodedata.normalize("NFKD", text)
        if unicodedata.category(each) not in ("Cf", "Mn", "Me", "Cc")
    )
    plain = plain.translate(str.maketrans("еіԁсѵνі", "eidcvvi"))
    return re.findall(rf"<\s*/?\s*(?:{names})", plain, re.IGNORECASE)
