"""Makes untrusted texts harmless for a prompt: text that looks like our framing or a control token is altered.

An alteration replaces a bracket or a sign by a similar character, so people can still read the text. Ordinary text is
unchanged. Altering a text twice changes nothing more.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

# All line breaks of Unicode. Models and pages may show each of them as a new line.
_LINE_END = re.compile("\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
# Controls, soft hyphens, bidi marks, fillers, tags, and variation selectors that no emoji and no script needs.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
# Persian, Indic and Mongolian scripts and emoji need joiners and selectors.
_JOINED = (
    "\u0600-\u109f\u1780-\u1cff\ua800-\uabff\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff\U0001e900-\U0001e95f"
    "\u00a9\u00ae\u203c\u2049\u20e3\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_KEYCAP = "(?<=[0-9#*])\ufe0f(?=\u20e3)"
_JOINER = re.compile(
    f"{_KEYCAP}|(?<=[{_JOINED}])([\u180b-\u180f\u200c\u200d\ufe0e\ufe0f]{{1,2}})|[\u180b-\u180f\u200c\u200d\ufe0e\ufe0f]"
)

# Letters that look like Latin ones and that no normal form maps to them: Cyrillic, Greek, Armenian, IPA, Cherokee,
# Lisu and small capitals.
_LIKE_LATIN = {
    "a": "аɑαᴀꓮᎪΑА", "b": "ЬВΒʙᏴꓐ", "c": "сϲᴄСϹᏟꓚ", "d": "ԁɗᴅᎠꓓ", "e": "еҽєεᴇℯЕΕᎬꓰ℮ə", "f": "ꓝϝғ",
    "g": "ɡցԍɢᏀꓖ", "h": "һհʜНΗᎻꓧ", "i": "іıɩιӏɪІΙӀᎥꓲ", "j": "јϳᴊЈᎫꓙ", "k": "кκᴋКΚᏦꓗ", "l": "ⅼʟᏞꓡ",
    "m": "мᴍМΜᎷꓟ", "n": "ոпηɴΝꓠ", "o": "оοօσᴏОΟՕꓳ", "p": "рρᴘРΡᏢꓑ", "q": "ԛզ", "r": "гᴦʀᎡꓣ", "s": "ѕꜱЅᏚꓢ",
    "t": "тτᴛТΤᎢꓔ", "u": "սυᴜꓴ", "v": "ѵνᴠѴᏙꓦ", "w": "ѡԝᴡԜᎳꓪ", "x": "хχХΧꓫ", "y": "уүγʏУΥҮᎩꓬ", "z": "ᴢΖᏃꓜ",
}  # fmt: skip
_LATIN = {ord(like): ord(letter) for letter, alike in _LIKE_LATIN.items() for like in alike}
_NOTHING = 0
_MOST_KEPT = 20_000


class _Folding(dict[int, int]):
    """The folded form of each character: one character, or `_NOTHING` for a combining one."""

    def __missing__(self, code: int) -> int:
        folded = _folded(chr(code))
        if len(self) < _MOST_KEPT:
            self[code] = folded
        return folded


# Raised and lowered parentheses are kept: unlike "(1)", they do not number lists.
_FOLDING = _Folding({point: point for point in (*range(128), *map(ord, "⁽⁾₍₎"))})


@dataclass(frozen=True, slots=True)
class Folded:
    """A text in which look-alike characters are replaced, and the position of each character in the original."""

    text: str
    positions: range | list[int]

    def span(self, start: int, end: int) -> slice:
        """Return the part of the original text that a part of the folded text stands for."""
        return slice(self.positions[start], self.positions[end - 1] + 1)


def visible(text: str) -> str:
    """Remove invisible characters, and write line ends as line feeds. Joiners inside words and emoji stay."""
    if not text.isascii() or _CONTROL.search(text):
        text = _INVISIBLE.sub("", _LINE_END.sub("\n", text))
    return text if text.isascii() else _JOINER.sub(_joining, text)


def fold(text: str) -> Folded:
    """Return the text with all digits as 0 to 9, all spaces as spaces, and Latin letters without accents."""
    if text.isascii():
        return Folded(text, range(len(text)))
    folded = text.translate(_FOLDING)
    if "\x00" not in folded:
        return Folded(folded, range(len(text)))
    return Folded(folded.replace("\x00", ""), [at for at, character in enumerate(folded) if character != "\x00"])


def _joining(found: re.Match[str]) -> str:
    return found.group(1) or (found.group() if found.string[found.end() : found.end() + 1] == "\u20e3" else "")


def _folded(character: str) -> int:
    code = ord(character)
    if code in _LATIN:
        return _LATIN[code]
    category = unicodedata.category(character)
    if category in ("Mn", "Me", "Cf"):
        return _NOTHING
    if category == "Zs":
        return ord(" ")
    number = unicodedata.numeric(character, None)
    if number is not None:
        return ord("0") + (int(number) if number in range(10) else 1)
    plain = unicodedata.normalize("NFKD", character)
    if any(unicodedata.category(mark) not in ("Mn", "Me") for mark in plain[1:]):
        return code
    return _LATIN.get(ord(plain[0]), ord(plain[0]))


# `<name>` and `</name>`. Names that documents use as placeholders (`<filename>`, `<answer>`) are left out.
_ANGLED = (
    # Llama 2, Mistral, Gemma, T5, GLM, InternLM, Command R, Jamba: begin and end of a text, and padding
    "s", "sop", "eop", "bos", "eos", "eoh", "eoa", "pad", "unk", "mask", "cls", "sep",
    r"(?:bos|eos|pad|unk|cls|sep|mask|eop)_token", r"extra_id_\d+", r"unused_?\d+", r"reserved_\d+", r"special_\d+",
    r"mask:\d+", "begin_of_text", "end_of_text", "end_of_utterance", "endoftext",
    # Gemma: turns, pictures, sounds, functions
    r"(?:start|end)_of_(?:turn|image|audio|video)", r"(?:image|audio)_soft_token",
    r"(?:start|end)_function_(?:call|response|declaration)", "escape",
    # Qwen, Hermes, GLM, Nemotron, Granite, Kimi: thoughts and tools
    "think", "thinking", "scratch_pad", r"tool_(?:calls?|response|responses|result|results|list|outputs?)", "tools",
    "toolcall", "available_tools", "arg_key", "arg_value", r"function=[^<>\n]{1,64}", r"parameter=[^<>\n]{1,64}",
    # Seed, MiniMax, Ling, Command R
    r"seed:[a-z_]{1,40}", r"minimax:[a-z_]{1,40}", r"role(?=>\s*(?:SYSTEM|HUMAN|USER|ASSISTANT|OBSERVATION))",
    r"co: ?[\d,]{1,20}",
    # StarCoder, SmolLM, Granite, Seed-Coder: code
    r"fim_(?:prefix|middle|suffix|pad)", "fim-(?:prefix|middle|suffix|pad)", "reponame", "repo_name", "file_sep",
    "gh_stars", r"issue_(?:start|comment|closed)", r"jupyter_(?:start|text|code|output|script)", "empty_output",
    r"commit_(?:before|msg|after)", "code_(?:prefix|middle|suffix)",
)  # fmt: skip
# `[NAME]` and `[/NAME]`, in any case.
_SQUARE = (
    # Mistral, in all versions of its tokenizer
    "INST", "SYSTEM_PROMPT", "AVAILABLE_TOOLS", "TOOL_CALLS", "TOOL_RESULTS", "TOOL_CONTENT", "CALL_ID",
    "MODEL_SETTINGS", "IMG_BREAK", "IMG_END", "BEGIN_AUDIO", r"control_\d+",
    # GLM, InternLM, Kimi
    "gMASK", "sMASK", r"UNUSED_TOKEN_\d+", r"extra_id_\d+", "(?:start|end)_header_id",
)  # fmt: skip
# As in `_SQUARE`, but only in capitals: in lower case they occur in usage texts, such as `[args]`.
_SQUARE_CAPITALS = (
    "THINK", "ARGS", "PREFIX", "MIDDLE", "SUFFIX", "IMG", "AUDIO", "TRANSCRIBE", "MASK", "PAD", "UNK", "CLS", "SEP",
    "BOS", "EOS", "EOT", "EOD", "SYS",
)  # fmt: skip
_OTHERS = (
    r"<<\s?/?SYS\s?>>",  # Llama 2
    r"<\|[^<>\n]{0,64}\|?>?",  # ChatML, Llama 3 and 4, Phi, DeepSeek, Qwen, gpt-oss, Granite, Falcon, ...
    r"<[\w/ ▁-]{1,40}\|>",  # what ends with a bar alone, such as Gemma's <turn|>
    r"\[\|/?\w{1,40}\|\]",  # Exaone
    r"<\[[^<>\[\]\n]{1,64}\]>",  # Seed-Coder
    r"\]~!?b\[?\]?|\[e~\[|\]![a-z]~\[|\]<\](?:[a-z_]{1,20}(?:>\[|\[>\[))?",  # MiniMax
    r">>(?-i:TITLE|ABSTRACT|INTRODUCTION|SUMMARY|COMMENT|ANSWER|QUESTION|DOMAIN|PREFIX|SUFFIX|MIDDLE)<<",  # Falcon
    r"\|\|\|(?-i:IP_ADDRESS|EMAIL_ADDRESS|PHONE_NUMBER)\|\|\|",  # OLMo
)

# It is matched against folded texts, in which full-width bars and brackets are plain ones.
CONTROL_TOKEN = re.compile(
    f"{'|'.join(_OTHERS)}|</?(?:{'|'.join(_ANGLED)})/?>"
    f"|\\[/?(?:{'|'.join(_SQUARE)})\\]|\\[/?(?-i:{'|'.join(_SQUARE_CAPITALS)})\\]",
    re.IGNORECASE,
)


Spans = Callable[[str], Iterable[tuple[int, int]]]
Rule = tuple[Spans, dict[int, str]]

# The replacements of brackets.
_NO_BRACKETS = "⟦⟧⦅⦆"


def _brackets(*categories: str) -> str:
    """Return all brackets of Unicode in these categories."""
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
    """Return the text without invisible characters, with control tokens and look-alikes of our delimiters altered."""
    return _altered(visible(text), *_FRAMING)


def as_passage(text: str) -> str:
    """Return a neutral text in which no line looks like the heading of a piece of evidence."""
    return _as_passage(text) if len(text) <= _REMEMBERED else _altered(visible(text), *_FRAMING, *_HEADINGS)


# The same passages are retrieved repeatedly.
@lru_cache(maxsize=2048)
def _as_passage(text: str) -> str:
    return _altered(visible(text), *_FRAMING, *_HEADINGS)


def as_name(text: str, limit: int) -> str:
    """Return a title, name, section or URL for one of our headings: one neutral line of at most `limit` characters."""
    # The end of a word shows where a control token ends, so the text is cut before it is altered.
    line = " ".join(visible(text[: limit * 4]).split())[:limit]
    return _altered(line, *_FRAMING, *_NAMES)[:limit]


def as_memory(text: str) -> str:
    """Return a neutral text that neither opens a section nor looks like a piece of evidence."""
    return _altered(visible(text), *_FRAMING, *_HEADINGS, *_SECTIONS)


def unlabelled(text: str, labels: str = SPEAKERS) -> str:
    """Return the text with altered colons after labels such as `User:` at the start of a line.

    `labels` are lower-case words separated by bars. Speakers in brackets or tags, as in `[User] x`, are altered too.
    """
    seen = visible(text)
    altered = _altered(seen, (lambda folded: _labels(folded, labels), _COLON), (_speakers, _BRACKETS | _ANGLES))
    return text if altered == seen else altered


def _found(*patterns: re.Pattern[str], near: tuple[str, ...] = ()) -> Spans:
    """Find the spans of all matches, or of a pattern's group. A text without a word of `near` is not searched."""

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
    """Find numbers anywhere in a line that are followed by a file name or by our parenthesis."""
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
