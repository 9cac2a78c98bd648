"""Finds the title of a plain text in its first lines."""

import re

from cragside.adapters.documents.reading import label

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
    """The title of a text: its first line, if that is marked as a heading or stands alone and is short; else ""."""
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
    """A line before a blank line, if it is neither prose nor code."""
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
