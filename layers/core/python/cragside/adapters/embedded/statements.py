"""Tells a short answer from an echo: from a question, a title or a heading that repeats the question."""

import re
from collections.abc import Iterator
from typing import get_args

from cragside.adapters.embedded.grammar import INTERROGATIVES, VERBS
from cragside.adapters.embedded.numbers import plain
from cragside.adapters.embedded.question_words import QuestionWords
from cragside.adapters.embedded.stopwords import HEADING_WORDS, SCAFFOLDING, STOPWORDS
from cragside.adapters.embedded.words import Language, stem, words

_PIECES = re.compile(r"[^.!?。？！\n]*(?:[.!?。？！](?=\w)[^.!?。？！\n]*)*[.!?。？！]*")
_NO_NEWS = {
    language: frozenset(stem(word, language) for word in SCAFFOLDING | HEADING_WORDS) for language in get_args(Language)
}
_TITLE_MARKS = "|-–—·»"
_SEPARATED = re.compile(r"\S,[^\W\d]|\t|=|→|->")
_ROW = re.compile(r"\|[^|]*\|")


def states_something(text: str, question: QuestionWords, language: Language) -> bool:
    """Tell if a sentence, a row or an entry of the text has a content word that the question lacks."""
    known = _NO_NEWS[language].union(plain(stem(word, language)) for word in question.every_word)
    answers = False
    for piece in pieces(text):
        if _asks(piece):
            answers = True
            continue
        # "Who was Ada? | Ada's pages" is a title, not a question with its answer.
        if answers and piece[0] in _TITLE_MARKS and "\n" not in text:
            continue
        statement = piece if answers or _is_sentence(piece) or _is_row(piece) else piece.partition(":")[2]
        if _has_news(statement, known, language):
            return True
    return False


def pieces(text: str) -> Iterator[str]:
    """The lines of a text, parted into sentences, each with its closing mark."""
    return (piece for found in _PIECES.findall(text) if (piece := found.strip()))


def _asks(piece: str) -> bool:
    first = words(piece)[:1]
    return piece[-1] in "?？" or (first != [] and first[0] in INTERROGATIVES and piece[-1] not in ".!。！")


def _is_sentence(piece: str) -> bool:
    return piece[-1] in ".!。！" or not VERBS.isdisjoint(words(piece))


def _is_row(piece: str) -> bool:
    return _SEPARATED.search(piece) is not None or _ROW.search(piece) is not None


def _has_news(text: str, known: frozenset[str], language: Language) -> bool:
    stems = (plain(stem(word, language)) for word in words(text) if word not in STOPWORDS)
    return not known.issuperset(stems)
