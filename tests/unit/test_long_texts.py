"""Work on a whole text takes time in proportion to its length, for any text."""

import re
from collections.abc import Callable
from functools import partial

import pytest

from cragside.adapters.embedded.annotator import EmbeddedAnnotator, summary_of
from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.adapters.embedded.extraction import extract
from cragside.adapters.embedded.grader import EmbeddedGrader
from cragside.adapters.embedded.keywords import keywords_of, search_query
from cragside.adapters.embedded.words import terms
from cragside.adapters.model_host.questions import one_line
from cragside.application.grading import strips_of
from cragside.domain.context import pack
from cragside.domain.evidence import Document
from cragside.domain.exchange import Exchange, reason_to_forget, recollect
from cragside.domain.neutral import neutralise
from cragside.domain.query import question_of
from cragside.domain.token_counts import count_tokens
from cragside.store.chunking import chunker, storable
from tests.bounds import TooSlow, read_within

pytestmark = [pytest.mark.slow, pytest.mark.interpreter]

_PIECES = (
    "a", "a ", "A. ", "! ", "?", " ", "\t", "\n", "a\n", "- a\n", "# a\n", "é ", "漢", "漢。", "ー", '"', "`a", "<a",
    "(", "[1] ", "query: ", "sure: ", "'", "1.", "A-b ", "Xy of Zz ", "The Ab is a cd. ", "a\u0301", "😀", "/rag ",
    "\x00", "TODO: a\n",
)  # fmt: skip


def _documents(text: str) -> list[Document]:
    return [Document(id="1", title=text, content=text, source="local", url=text, metadata={"filename": text})]


def _graded(text: str) -> None:
    grader = EmbeddedGrader(WordLlamaEmbedder())
    grader.scores("What is this?", [(text, text)])
    grader.scores(text, [("Title", "A passage.")])


_READINGS: dict[str, Callable[[str], object]] = {
    "annotate": EmbeddedAnnotator().tier2,
    "chunks": chunker(count_tokens, 1000, 200),
    "command": question_of,
    "extract": extract,
    "forget": lambda text: reason_to_forget(Exchange(text, text)),
    "grade": _graded,
    "keywords": keywords_of,
    "neutralise": neutralise,
    "pack": lambda text: pack(_documents(text), budget=1000, count_tokens=count_tokens),
    "recollect": lambda text: recollect(_documents(text), budget=1000, count_tokens=count_tokens),
    "rewritten": lambda text: one_line(text, about="x"),
    "search": search_query,
    "storable": storable,
    "strips": strips_of,
    "summary": summary_of,
    "terms": terms,
    "tokens": count_tokens,
}


@pytest.mark.attack("slow regular expressions")
@pytest.mark.parametrize("reading", _READINGS)
def test_a_text_made_to_be_slow_is_read_in_time(reading: str) -> None:
    _READINGS[reading]("Warm up, please.")
    for piece in _PIECES:
        read_within(2, _READINGS[reading], partial(_repeated, piece))


def test_a_quadratic_reading_is_found() -> None:
    with pytest.raises(TooSlow):
        read_within(2, re.compile(r"\s*x").search, lambda length: " " * length)


def _repeated(piece: str, length: int) -> str:
    return (piece * length)[:length] + "x"
