"""Makes untrusted texts harmless for a prompt: text that looks like our framing or a control token is altered.

An alteration replaces a bracket or a sign by a similar character, so people can still read the text. Ordinary text is
unchanged. Altering a text twice changes nothing more.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache

from cragside.domain.control_tokens import CONTROL_TOKEN
from cragside.domain.folding import fold, visible

Spans = Callable[[str], Iterable[tuple[int, int]]]
Rule = tuple[Spans, dict[int, str]]

# The replacements of brackets.
_NO_BRACKETS = "⟦⟧⦅⦆"


def _brackets(*categories: str) -> str:
    """Unicode's brackets of these categories."""
    every = (chr(code) for code in (*range(128, 0x3100), *range(0xFD00, 0xFFFF)))
    found = (each for each in every if unicodedata.category(each) in categories and each not in _NO_BRACKETS)
    return "".join(each for each in found if each in "«»‹›" or "QUOTATION" not in unicodedata.name(each))


# Unicode lists some brackets as symbols. The ornate parentheses are mirrored, so each both opens and closes.
_OPENING = "[{<⎡⎢⎣❮❰﴾" + _brackets("Ps", "Pi")
_CLOSING = "]}>⎤⎥⎦❯❱﴿" + _brackets("Pe", "Pf")


def _table(**pairs: str) -> dict[int, str]:
    return {ord(sign): instead for instead, signs in pairs.items() for sign in signs}


_ESCAPES = _table(**{"⅋": "&＆﹠", "٪": "%％﹪", "⧵": "\\＼﹨"})
_ANGLES = _ESCAPES | _table(**{"‹": "<＜﹤≮《〈⟨⟪❬❮❰⦑⧼«˂ᐸ", "›": ">＞﹥≯》〉⟩⟫❭❯❱⦒⧽»˃ᐳ"})
_BRACKETS = _ESCAPES | _table(**{"⟦": f"{_OPENING}＜﹤≮｛", "⟧": f"{_CLOSING}＞﹥≯｝"})
_SIGNS = _ANGLES | _table(**{"⟦": "[［{｛", "⟧": "]］}｝", "¦": "|｜", "∼": "~～"})
_PARENTHESES = _BRACKETS | _table(**{"⦅": "(（﹙❨❪⟮⁽₍", "⦆": ")）﹚❩❫⟯⁾₎", "‚": ",，﹐"})

# Current and earlier names of our delimiters. Their code is random, so no text can contain it.
_NAME = r"\s*+[^\w\s<>‹›]{0,4}\s*+[^\w\s<>‹›]{0,4}\s*+(?:evidences?|memory|memories|conversations?)(?![a-z])"
_DELIMITER = re.compile(
    rf"(?:[<〈⟨❬❮⦑⧼˂ᐸ]|&(?:amp;){{0,3}}(?:lt|#0*60|#x0*3c);?|\\u003c|\\x3c|%(?:25){{0,3}}3c){_NAME}[^<>\n]{{0,200}}+>?"
    rf"|[\[{{《«⟪❰][^\w\n]{{0,4}}/{_NAME}[^\w\n]{{0,8}}",
    re.IGNORECASE,
)

# A number in brackets, but not a footnote (`[^1]`), a date (`[2026-01-31]`) or an amount (`[$5]`).
_OPEN = rf"(?:[{re.escape(_OPENING)}]|&(?:amp;){{0,3}}(?:#0*91|#x0*5b|lbrack|lsqb);?|%(?:25){{0,3}}5b)"
_CLOSE = rf"(?:[{re.escape(_CLOSING)}]|&(?:amp;){{0,3}}(?:#0*93|#x0*5d|rbrack|rsqb);?|%(?:25){{0,3}}5d)"
_AMONG = r"(?:[^\w\n^$£€%+/=<>@!?]|_|</?[a-z][^<>\n]{0,40}>)"
_SOURCE = "(?:evidence|source|document|doc|passage|reference|ref|citation|result|quote|quelle|beleg|dokument)s?"
# Several numbers, or one with a page. Without a name after them, they are a list in code.
_MORE = r"(?:\s?[,;&]\s?(?:pages?|pp?|s)?\.?\s?\d{1,4}[a-z]?){1,8}"
_NAMED = r"(?=[\s*_\"'`>:]{0,4}(?!(?:for|if|in|and|or|is|not|else|as)\b)[^\W\d_])"
_NUMBER = (
    rf"{_OPEN}{_AMONG}{{0,8}}?(?:{_SOURCE}{_AMONG}{{0,3}})?(?:(?:[lo]{{0,3}}\d[\dlo]*+[a-z]?|l)(?:/\d{{1,3}})?"
    rf"{_AMONG}{{0,8}}?{_CLOSE}|\d{{1,4}}[a-z]?{_MORE}{_AMONG}{{0,8}}?{_CLOSE}{_NAMED})"
)
_NUMBERED = re.compile(_NUMBER, re.IGNORECASE)
_TAG = r"</?[a-z][^<>\n]{0,200}>"
# What may precede a forged heading: anything but letters, mark-up, bullets such as "a)", and words for a source.
_LEAD = (
    rf"(?:{_NUMBER}|{_TAG}|&#?\w{{1,10}};|[a-z]{{1,4}}[.):](?=[\W\d_])|o(?=\s)"
    rf"|{_SOURCE}(?=[\W\d_])"
    r"|[^\w\n]|[\d_])*+"
)
_BREAK = r"<(?:/?(?:p|li|div|h[1-6]|t[rdh]|ul|ol|d[dtl]|blockquote|pre|section|article|table)|[bh]r)\b[^<>\n]{0,200}>"
_LINE_START = re.compile(rf"(?:^|{_BREAK}){_LEAD}", re.IGNORECASE | re.MULTILINE)
# The end of our headings: the origin of a passage and its relevance.
_TAIL = re.compile(
    r"[({\[❨❪⟮⁽₍][^(){}\[\]\n]{0,320}\brelevance[^\w\n]{0,4}\d[\d.,]{0,8}[^\w\n]{0,2}"
    r"|\b(?:local|web)\b[^\w\n]{1,8}relevance[^\w\n]{0,4}\d[\d.,]{0,8}[^\w\n]{0,2}",
    re.IGNORECASE,
)
# Most texts have none of these words, and searching for a word is fast.
_DELIMITER_WORDS = ("evidence", "memor", "conversation")
_ORIGIN_WORDS = ("local", "web")
_TAIL_WORDS = ("relevance",)
_LONGEST_HEADING = 1000
# Texts with more characters, such as web pages, are not cached.
_REMEMBERED = 4000
_LOOKED_AHEAD = 16
# The note that a passage is earlier than another one.
_EARLIER = re.compile(r"[(❨❪⟮⁽₍][^()\n]{0,320}\bearlier\s{1,4}than\b", re.IGNORECASE)
_ORIGIN = re.compile(r"[(❨❪⟮⁽₍](?:[^()\n]{0,320}[,;])?\s*(?:local|web)\s*[,;)❩❫⟯⁾₎]", re.IGNORECASE)

# What follows a number in our headings: a file name of at most three words, or the origin of a passage.
_ENDING = r"\.(?:pdf|docx?|xlsx?|pptx?|od[tsp]|rtf|md|txt|csv|tsv|html?|eml|msg|json|xml|ya?ml|epub|vtt|srt|log|py)\b"
_WORD = (
    r"(?!(?:of|for|in|and|or|is|the|a|an|to|from|see|with|by|on|at|as)\s)[^\W_][\w'&+~-]{0,80}(?:\.[\w-]{1,40}){0,4}?"
)
_CITED = re.compile(
    rf"[ \t*_\"'`>:|~-]{{0,8}}(?:{_WORD}[ \t]){{0,2}}{_WORD}{_ENDING}|[^()\[\]\n]{{0,200}}(?:{_ORIGIN.pattern})"
    rf"|[^()\[\]\n]{{0,200}}(?:{_TAIL.pattern})",
    re.IGNORECASE,
)
_FILE = re.compile(_ENDING, re.IGNORECASE)
# Folding maps digits in circles, in parentheses or with a full stop to one digit. Plain digits are not altered.
_DIGIT = re.compile(r"(?<!\w)\d(?!\w)")
_ENCLOSED = {
    code: str(int(unicodedata.numeric(chr(code))))
    for code in (*range(0x2460, 0x249C), *range(0x24EA, 0x2500), *range(0x2776, 0x2794), *range(0x3248, 0x3260),
                 *range(0x32B1, 0x32C0), *range(0x1F100, 0x1F10D))
    if unicodedata.numeric(chr(code), None) is not None
}  # fmt: skip

# What opens a section: marks before a line, a line of marks below one, elements, and a line that is entirely bold.
_MARKS = re.compile(r"^(?:[^\w\n#=]|\d{1,4}[.):])*+(#[# \t]*+|=++(?=\s|$))", re.MULTILINE)
_UNDERLINE = re.compile(r"^[^\w\n=-]*+(=[= \t]*+|-[- \t]*+)$", re.MULTILINE)
_ELEMENT = re.compile(
    r"<\s*+/?\s*+(?:h[1-6]|title|header|section|system|instructions?)\b[^<>]{0,200}+>?", re.IGNORECASE
)
_BOLD = re.compile(r"^[^\w\n*]*+(?:\*\*|__)[^*\n]{1,80}(?:\*\*|__)[^\w\n]{0,4}$", re.MULTILINE)
_HEADS = _table(**{"♯": "#＃﹟", "═": "=＝﹦", "─": "-－﹣"})
_STARS = _table(**{"∗": "*＊﹡", "ˍ": "_＿"})

SPEAKERS = "date|skill|user|assistant|system|human|ai|bot|model|tool|developer"
_COLON = _table(**{"∶": ":：﹕︓꞉ː׃"})
_COLONS = "[:꞉ː׃]"
# What may precede the first word of a line.
_AHEAD = rf"{_TAG}|&#?\w{{1,10}};|[^\w\n]|[\d_]|[a-z][.)]"
# A line that begins with a speaker in brackets or tags: `[User] x`, `<user> x`, `<b>User</b> x`. What follows the
# bracket distinguishes it from a link, a section of settings and an element.
_TURN = "(?:user|assistant|system|human|ai|bot)"
_SAYS = r"(?=[*_`~]{0,3}(?:\w|[ \t]++[^\s=#;|∶:]))"
_NICKNAME = rf"<{_TURN}[ \t]?>{_SAYS}(?![ \t]*<)(?![^<\n]*+</{_TURN})"
_SPEAKER = re.compile(
    rf"^(?:(?!{_NICKNAME})(?:{_AHEAD}))*+(?:(?={_NICKNAME})<{_TURN}[ \t]?(?P<angle>>)|{_TURN}(?:"
    rf"(?:</?[a-z][^<>\n]{{0,40}}>|[*_`~\"' \t]){{0,8}}(?P<square>[\]】〕〗〙〛」』]){_SAYS}"
    rf"|(?:</[a-z][^<>\n]{{0,40}}>){{0,4}}</[a-z][^<>\n]{{0,40}}(?P<tag>>)[ \t]++(?![<\s=#;|∶:])))",
    re.IGNORECASE | re.MULTILINE,
)


def neutralise(text: str) -> str:
    """The text without invisible characters, with control tokens and look-alikes of our delimiters altered."""
    return _altered(visible(text), *_FRAMING)


def as_passage(text: str) -> str:
    """A neutral text in which no line looks like the heading of a piece of evidence."""
    return _as_passage(text) if len(text) <= _REMEMBERED else _altered(visible(text), *_FRAMING, *_HEADINGS)


# The same passages are retrieved repeatedly.
@lru_cache(maxsize=2048)
def _as_passage(text: str) -> str:
    return _altered(visible(text), *_FRAMING, *_HEADINGS)


def as_name(text: str, limit: int) -> str:
    """A title, name, section or URL for one of our headings: one neutral line of at most `limit` characters."""
    # The end of a word shows where a control token ends, so the text is cut before it is altered.
    line = " ".join(visible(text[: limit * 4]).split())[:limit]
    return _altered(line, *_FRAMING, *_NAMES)[:limit]


def as_memory(text: str) -> str:
    """A neutral text that neither opens a section nor looks like a piece of evidence."""
    return _altered(visible(text), *_FRAMING, *_HEADINGS, *_SECTIONS)


def unlabelled(text: str, labels: str = SPEAKERS) -> str:
    """The text with altered colons after labels such as `User:` at the start of a line.

    `labels` are lower-case words separated by bars. Speakers in brackets or tags, as in `[User] x`, are altered too.
    """
    seen = visible(text)
    altered = _altered(seen, (lambda folded: _labels(folded, labels), _COLON), (_speakers, _BRACKETS | _ANGLES))
    return text if altered == seen else altered


def _found(*patterns: re.Pattern[str], near: tuple[str, ...] = ()) -> Spans:
    """Finds the spans of all matches, or of a pattern's group. Skips texts without a word of `near`."""

    def spans(text: str) -> Iterator[tuple[int, int]]:
        if near and not _has(text, near):
            return
        for pattern in patterns:
            for found in pattern.finditer(text):
                yield found.span(pattern.groups)

    return spans


def _has(text: str, words: tuple[str, ...]) -> bool:
    lower = text.lower()
    return any(word in lower for word in words)


def _numbers_at_line_starts(text: str) -> Iterator[tuple[int, int]]:
    if _NUMBERED.search(text):
        for start in _LINE_START.finditer(text):
            # The text after the last number decides whether it is a number.
            for number in _NUMBERED.finditer(text, start.start(), start.end() + _LOOKED_AHEAD):
                if number.end() <= start.end():
                    yield number.span()


def _cited(text: str) -> Iterator[tuple[int, int]]:
    """Numbers anywhere in a line that are followed by a file name or our parenthesis."""
    if _FILE.search(text) or _has(text, (*_ORIGIN_WORDS, *_TAIL_WORDS)):
        for pattern in (_NUMBERED, _DIGIT):
            for found in pattern.finditer(text):
                if _CITED.match(text, found.end()):
                    yield found.span()


def _origins_behind_numbers(text: str) -> Iterator[tuple[int, int]]:
    if not _has(text, _ORIGIN_WORDS):
        return
    # Numbers that are close together share the text after them, which is searched once.
    places: list[tuple[int, int]] = []
    for _, end in _numbers_at_line_starts(text):
        line_end = text.find("\n", end, end + _LONGEST_HEADING)
        stop = line_end if line_end >= 0 else min(end + _LONGEST_HEADING, len(text))
        start = places.pop()[0] if places and end <= places[-1][1] else end
        places.append((start, stop))
    for start, stop in places:
        yield from (found.span() for found in _ORIGIN.finditer(text, start, stop))


def _labels(text: str, labels: str) -> Iterator[tuple[int, int]]:
    return (found.span(1) for found in _label(labels).finditer(text))


@cache
def _label(labels: str) -> re.Pattern[str]:
    behind = rf"(?:</?[a-z][^<>\n]{{0,40}}>|(?!{_COLONS})[^\w\n]){{0,8}}"
    nickname = rf"<(?:{labels})[ \t]?>(?:(?![<∶]|{_COLONS})[^\w\n]){{0,8}}{_COLONS}(?!:?=)"
    pattern = rf"^(?:(?!{nickname})(?:{_AHEAD}))*+<?(?:{labels}){behind}({_COLONS})"
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)


def _speakers(text: str) -> Iterator[tuple[int, int]]:
    return (found.span(found.lastgroup or 0) for found in _SPEAKER.finditer(text))


def _altered(text: str, *rules: Rule) -> str:
    folded = fold(text)
    characters: list[str] | None = None
    for find, table in rules:
        for span in find(folded.text):
            characters = list(text) if characters is None else characters
            where = folded.span(*span)
            characters[where] = [each.translate(table) for each in characters[where]]
    return text if characters is None else "".join(characters)


_FRAMING: tuple[Rule, ...] = (
    (_found(CONTROL_TOKEN), _SIGNS),
    (_found(_DELIMITER, near=_DELIMITER_WORDS), _SIGNS),
)
_HEADINGS: tuple[Rule, ...] = (
    (_numbers_at_line_starts, _BRACKETS),
    (_cited, _BRACKETS | _ENCLOSED),
    (_origins_behind_numbers, _PARENTHESES),
    (_found(_TAIL, near=_TAIL_WORDS), _PARENTHESES),
)
_NAMES: tuple[Rule, ...] = (
    (_found(_NUMBERED), _BRACKETS),
    (_cited, _ENCLOSED),
    (_found(_TAIL, _ORIGIN, _EARLIER), _PARENTHESES),
)
_SECTIONS: tuple[Rule, ...] = (
    (_found(_MARKS, _UNDERLINE), _HEADS),
    (_found(_ELEMENT), _SIGNS),
    (_found(_BOLD), _STARS),
)
