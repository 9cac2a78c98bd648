"""Finds what a text says of itself: its title in the first lines, and front matter."""

import re
from typing import TYPE_CHECKING, Any

from cragside.adapters.documents.reading import MAX_LISTED, Reading, label
from cragside.domain.characters import encodable

if TYPE_CHECKING:
    import yaml


_HEAD = 2_000
_LONGEST = 90
_MOST_WORDS = 12
# A line that begins with a small letter, or with one of these words, is prose from this number of words on.
_SMALL_WORDS = 6
_SUBJECT_WORDS = 4
_SUBJECTS = frozenset(
    {
        "i", "we", "you", "he", "she", "it", "they", "this", "that", "these", "there", "ich", "wir", "du", "er", "sie",
        "es", "das", "dies", "je", "nous", "vous", "il", "elle", "ils", "c'est",
    }
)  # fmt: skip
_GREETINGS = frozenset(
    {
        "dear", "hi", "hello", "hey", "greetings", "hallo", "liebe", "lieber", "guten", "sehr", "moin", "bonjour",
        "bonsoir", "cher", "chère", "salut",
    }
)  # fmt: skip
# What ends prose, or announces a list.
_NO_END = (".", ",", ";", ":", "…", "。", "，", "；", "：")
_CODE = re.compile(r"[{}<>;=\\|$^~`@]|\w\(|//|->|\*/|\s--?[a-z]|(?:import|package|def|sudo|select)\s")
_NO_BEGIN = re.compile(r"[-+•>/%.\[\]]|\d{1,9}[.)]\s|#!")
_SENTENCE_END = re.compile(r"[^\W\d_]{3}[.!?]\s")
_RULE = re.compile(r"([=\-~*#^\"'+_])\1{2,}")
_MARK = re.compile(r"(?:#{1,6}|=|#\+title:)\s+(\S.*)", re.IGNORECASE)
_NAMED = re.compile(r"([^\W\d_]{2,12})\s?:\s*(\S.*)")
_TITLES = frozenset({"title", "titel", "titre", "topic", "thema", "subject", "betreff", "objet"})
_HEADERS = frozenset(
    {
        "date", "datum", "from", "von", "de", "to", "an", "à", "cc", "by", "author", "autor", "auteur", "url",
        "source", "link", "tags", "status", "version", "created", "updated",
    }
)  # fmt: skip


def first_line_title(text: str) -> str:
    """Return the title of a text: its first line, if that is marked as a heading or stands alone and is short.

    Else "".
    """
    lines = [line.strip() for line in text[:_HEAD].split("\n")]
    while lines and not lines[0]:
        lines.pop(0)
    first, second, third, *_ = (*lines, "", "", "")
    if not any(lines[1:]):
        return ""
    if _RULE.fullmatch(first) and first == third:
        return _plain(second)
    if _RULE.fullmatch(second):
        return _plain(first)
    marked = _MARK.fullmatch(first)
    if marked:
        return _plain(marked[1].rstrip("#= "))
    return "" if second else _alone(first.strip("*_ "))


def _plain(line: str) -> str:
    return label(line) if len(line) <= _LONGEST and any(map(str.isalpha, line)) else ""


def _alone(line: str) -> str:
    """Return a line before a blank line, if it is neither prose nor code."""
    words = line.lower().split()
    named = _NAMED.fullmatch(line)
    if named and named[1].lower() in _TITLES:
        return _plain(named[2])
    if not 1 <= len(words) <= _MOST_WORDS or line.endswith(_NO_END) or _is_prose(line, words):
        return ""
    if _CODE.search(line) or _NO_BEGIN.match(line) or (named and named[1].lower() in _HEADERS):
        return ""
    return _plain(line)


def _is_prose(line: str, words: list[str]) -> bool:
    return (
        (line[0].islower() and len(words) >= _SMALL_WORDS)
        or (words[0] in _SUBJECTS and len(words) >= _SUBJECT_WORDS)
        or words[0].strip("!,") in _GREETINGS
        or _SENTENCE_END.search(line) is not None
    )


# The YAML of a note has some hundred characters. Parsing this many takes 0.1 s at most.
_MOST_CHARACTERS = 8_000
_MOST_VALUES = 500
# The parser's time grows with the square of the depth.
_MOST_BRACKETS = 200
_DEEPEST = 4
_LONGEST_NAME = 100
# Aliases may repeat a value in many places.
_MOST_REPEATED = 4 * _MOST_CHARACTERS
# Commands recognise pages, repositories and conversations by these. Only whoever brings a document may say so.
_RESERVED = frozenset(
    {"kind", "repoId", "repoUrl", "path", "fetchedUrl", "contentType"},
)
_LONGEST_INTEGER = 15
_TRUTH = {"true": True, "false": False}
_NOTHING = frozenset({"", "~", "null"})
_PLAIN_TAGS = tuple(
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "timestamp", "seq", "map")
)


class _Refused(Exception):
    """The YAML is too large, too deep, or asks for objects of a program."""


def noted(text: str) -> Reading:
    """Read a text without its front matter, with the title and the properties that this gives.

    What is not plain YAML of a reasonable size stays part of the text, and so does front matter with no text behind it.
    """
    block, body = _parted(text)
    properties = _properties(block) if body.strip() else None
    if properties is None:
        return Reading(text)
    title = properties.get("title")
    return Reading(body, title=label(title) if isinstance(title, str) else "", properties=properties)


def _parted(text: str) -> tuple[str, str]:
    """Return the lines between two lines of dashes, and what is behind them; "" and "" without such lines."""
    first, *lines = text[:_MOST_CHARACTERS].split("\n")
    if first.rstrip() != "---":
        return "", ""
    at = len(first) + 1
    for number, line in enumerate(lines):
        at += len(line) + 1
        if line.rstrip() in ("---", "..."):
            return "\n".join(lines[:number]), text[at:]
    return "", ""


def _properties(block: str) -> dict[str, Any] | None:
    """Return the values by their names; None if this is no mapping in plain YAML."""
    if block.count("[") + block.count("{") > _MOST_BRACKETS:
        return None
    import yaml  # 15 ms, and most texts have no front matter

    try:
        # This builds no objects, and gives every value as it is written.
        root = yaml.compose(block, Loader=yaml.BaseLoader)
        found = _Values().of(root) if isinstance(root, yaml.MappingNode) else None
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError, _Refused):
        return None
    if not isinstance(found, dict) or not found:
        return None
    kept = {name: value for name, value in found.items() if name not in _RESERVED and len(name) <= _LONGEST_NAME}
    tags = _tags(kept.pop("tags", None)) + _tags(kept.pop("tag", None))
    return {**kept, **({"tags": list(dict.fromkeys(tags))[:MAX_LISTED]} if tags else {})}


class _Values:
    """Makes values of YAML's nodes, as many as are reasonable."""

    def __init__(self) -> None:
        self._left = _MOST_VALUES
        self._characters = _MOST_REPEATED

    def of(self, node: "yaml.Node", depth: int = 0) -> Any:
        """Return the value of a node; None for nothing. Raises `_Refused`."""
        import yaml

        self._left -= 1
        if self._left < 0 or depth > _DEEPEST or node.tag not in _PLAIN_TAGS:
            raise _Refused
        if isinstance(node, yaml.ScalarNode):
            self._characters -= len(node.value)
            if self._characters < 0:
                raise _Refused
            return _scalar(encodable(node.value), plain=node.style is None)
        if isinstance(node, yaml.SequenceNode):
            items = [self.of(item, depth + 1) for item in node.value]
            return [item for item in items if item is not None] or None
        named = [(self.of(name, depth + 1), self.of(value, depth + 1)) for name, value in node.value]
        if any(isinstance(name, list | dict) for name, _ in named):
            raise _Refused
        return {str(name): value for name, value in named if value is not None} or None


def _scalar(written: str, *, plain: bool) -> Any:
    """Return a word, a number or a truth. Dates stay as they are written."""
    if not plain:
        return written or None
    if written.lower() in _NOTHING:
        return None
    if written.lower() in _TRUTH:
        return _TRUTH[written.lower()]
    digits = written.removeprefix("-")
    whole, point, rest = digits.partition(".")
    if (
        not (digits.isascii() and whole.isdigit() and (whole == "0" or whole[0] != "0"))
        or len(digits) > _LONGEST_INTEGER
    ):
        return written
    if not point:
        return int(written)
    return float(written) if rest.isdigit() else written


def _tags(value: Any) -> list[str]:
    """Tags as a list of words, however they are written: as a list, or with commas or blanks between them."""
    if isinstance(value, str):
        value = value.split(",") if "," in value else value.split()
    items = value if isinstance(value, list) else [value]
    words = [str(item).strip().lstrip("#") for item in items if not isinstance(item, dict | list | None)]
    return [label(word) for word in words if word]
