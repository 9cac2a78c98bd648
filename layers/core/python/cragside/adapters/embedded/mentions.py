"""Finds names and terms in a text, the first step of entity extraction."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cragside.adapters.embedded.grammar import ARTICLES
from cragside.adapters.embedded.stopwords import STOPWORDS

LONGEST_NAME = 5
_LONGEST_SENTENCE = 600
_MOST_SENTENCES = 400
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])[\"'”’)\]]{0,2}\s+|(?<=[。！？])|\n+")
# Runs of katakana and Han are tokens: Japanese writes names and terms like this.
_TOKEN = re.compile(
    r"`[^`\n]{1,60}`|[\u30a0-\u30ff]{2,20}|[\u3400-\u9fff]{2,8}"
    r"|[^\W_\u3040-\u30ff\u3400-\u9fff](?:[^\W\u3040-\u30ff\u3400-\u9fff]|[.+#&'’/-](?=[^\W\u3040-\u30ff\u3400-\u9fff]))*(?:\+\+|#)?"
    r"|[^\s]"
)
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.{1,120})")
_DECORATION = re.compile(r"^[\s>*_+-]++|(?<![\s*_])[\s*_]++$|[*_]{2,3}")
_CONNECTORS = frozenset({"of", "de", "del", "der", "di", "da", "du", "la", "van", "von"})
_COPULA = frozenset({"is", "are", "was", "were", "means", "refers", "describes", "ist", "sind", "war", "bezeichnet"})
_NOT_NAMES = frozenset(
    """
    monday tuesday wednesday thursday friday saturday sunday january february march april june july august september
    october november december date user assistant skill note example section chapter figure table page today yesterday
    yes okay ok first second third finally moreover furthermore nevertheless therefore later many several
    """.split()  # noqa: SIM905 - a paragraph of words reads better than a list of strings
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """The text and the tokens of a sentence or a heading."""

    text: str
    tokens: tuple[str, ...]
    heading: bool = False


@dataclass(frozen=True, slots=True)
class Mention:
    """A candidate for an entity: its words as written, and how it was found."""

    words: tuple[str, ...]
    kind: str  # name, acronym, code, heading, definition, opening


def sentences(text: str) -> list[Sentence]:
    """The sentences and headings of a text, at most 400 of at most 600 characters each."""
    found: list[Sentence] = []
    for line in text.splitlines():
        heading = _HEADING.match(line)
        cleaned = _DECORATION.sub("", heading.group(1) if heading else line).strip()
        for part in [cleaned] if heading else _SENTENCE_END.split(cleaned):
            cut = " ".join(part[:_LONGEST_SENTENCE].split())
            tokens = tuple(_TOKEN.findall(cut))
            if any(is_word(token) for token in tokens):
                found.append(Sentence(cut, tokens, heading is not None))
            if len(found) == _MOST_SENTENCES:
                return found
    return found


def is_word(token: str) -> bool:
    """Tell if a token is a word or code, not punctuation."""
    return token[0].isalnum() or (token[0] == "`" and len(token) > 2)


def mentions(sentence: Sentence) -> Iterator[Mention]:
    """Names, acronyms, code, defined terms and headings of a sentence."""
    if sentence.heading:
        named = tuple(token for token in sentence.tokens if is_word(token))
        yield Mention(_without_article(named)[:LONGEST_NAME], "heading")
    yield from _defined(sentence)
    run: list[str] = []
    for position, token in enumerate(sentence.tokens):
        if token[0] == "`":
            yield Mention((token.strip("`"),), "code")
        elif _is_caseless_name(token):
            yield Mention((token,), "name")
        if _is_name_word(token) or (run and token.isdigit() and len(token) <= 4):
            run.append(token)
            continue
        follows = sentence.tokens[position + 1] if position + 1 < len(sentence.tokens) else ""
        if run and token in _CONNECTORS and follows and _is_name_word(follows):
            run.append(token)
            continue
        yield from _named(run, first=position == len(run))
        run = []
    yield from _named(run, first=len(run) == len(sentence.tokens))


def _named(run: list[str], *, first: bool) -> Iterator[Mention]:
    words = _without_article(tuple(run))
    while words and words[0].lower() in STOPWORDS and not words[0].isupper():
        words = words[1:]
    if not words or words[0].lower() in _NOT_NAMES:
        return
    # A capital at the start of a sentence proves nothing. Such an "opening" needs support from other sentences.
    if len(words) == 1 and first and not words[0].isupper():
        yield Mention(words, "opening")
    elif len(words) == 1 and words[0].isupper() and len(words[0]) < 2:
        return
    else:
        acronym = len(words) == 1 and sum(c.isupper() for c in words[0]) > 1
        yield Mention(words[:LONGEST_NAME], "acronym" if acronym else "name")


def _defined(sentence: Sentence) -> Iterator[Mention]:
    """X in "An X is ...", if X has at most four words."""
    subject: list[str] = []
    for token in sentence.tokens[:6]:
        if token.lower() in _COPULA:
            words = _without_article(tuple(subject))
            if words and not any(word.lower() in STOPWORDS | _NOT_NAMES for word in words):
                yield Mention(words, "definition")
            return
        if not is_word(token) or token[0] == "`":
            return
        subject.append(token)


def _without_article(words: tuple[str, ...]) -> tuple[str, ...]:
    return words[1:] if len(words) > 1 and words[0].lower() in ARTICLES else words


def _is_name_word(token: str) -> bool:
    return token[0].isupper() and (len(token) > 1 or token.isupper())


def _is_caseless_name(token: str) -> bool:
    return "\u30a0" <= token[0] <= "\u30ff" or "\u3400" <= token[0] <= "\u9fff"
