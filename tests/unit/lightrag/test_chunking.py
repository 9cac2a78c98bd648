"""Cutting: passages of a text of any length and shape, in time that grows with the length alone."""

import pytest

from cragside.domain.document import Mark
from cragside.domain.token_counts import count_tokens
from cragside.store.chunking import chunker, cut, storable

PARAGRAPH = "William Armstrong built a bridge over the river Coquet. " * 15 + "\n\n"
SHAPES = {
    "paragraphs": PARAGRAPH * 400,
    "lines": "".join(f"{number} over the river\n" for number in range(15_000)),
    "words": "river coquet " * 20_000,
    "no blanks": "abcdefghij" * 30_000,
    "one long word among others": PARAGRAPH + "x" * 200_000 + " " + PARAGRAPH,
    "emoji": "\U0001f9a6" * 100_000,
}


class Counting:
    """Counts tokens, and what it was asked."""

    def __init__(self) -> None:
        self.calls = self.longest = self.characters = 0

    def __call__(self, text: str) -> int:
        self.calls += 1
        self.characters += len(text)
        self.longest = max(self.longest, len(text))
        return count_tokens(text)


@pytest.mark.parametrize("text", SHAPES.values(), ids=list(SHAPES))
def test_splitting_reads_any_text_a_few_times_and_never_all_at_once(text: str) -> None:
    counting = Counting()
    pieces = cut(text, (), chunker(counting, 1000, 200), counting)
    assert counting.calls < len(text) / 5
    assert counting.characters < 10 * len(text)
    assert counting.longest <= 50_000
    assert all(0 < piece.tokens <= 1000 for piece in pieces)


@pytest.mark.parametrize("text", SHAPES.values(), ids=list(SHAPES))
def test_splitting_loses_no_text(text: str) -> None:
    at = 0
    for chunk in chunker(count_tokens, 300, 0)(text):
        found = text.index(chunk, at)
        assert not text[at:found].strip()
        at = found + len(chunk)
    assert not text[at:].strip()


def test_neighbours_overlap_also_where_there_are_no_blanks() -> None:
    text = "".join(f"{number:06d}" for number in range(4_000))
    first, second, *_ = chunker(count_tokens, 100, 20)(text)
    assert count_tokens(first) <= 100
    start = text.index(second)
    assert 0 < start < len(first)


def test_a_short_text_is_one_passage_and_late_marks_are_found() -> None:
    assert chunker(count_tokens, 1000, 200)("Two words.") == ["Two words."]
    text = PARAGRAPH * 200
    half = len(PARAGRAPH) * 100
    pieces = cut(text, (Mark(0, 1, "Early"), Mark(half, 2, "Late")), chunker(count_tokens, 1000, 200), count_tokens)
    pages = [piece.page for piece in pieces]
    assert pages == sorted(pages, key=lambda page: page or 0)
    assert {1, 2} == set(pages)
    assert {(piece.page, piece.section) for piece in pieces} == {(1, "Early"), (2, "Late")}


def test_a_passage_lists_the_sections_it_spans_but_not_the_next_one() -> None:
    text = "No section. " + "Grease is applied in April. " * 3 + "The end."
    marks = (Mark(12, section="Care"), Mark(40, section="Care > Grease"), Mark(96, section="End"))
    split = chunker(count_tokens, count_tokens("Grease is applied in April. ") + 1, 0)
    pieces = cut(text, marks, split, count_tokens)
    assert [(piece.text, piece.section, piece.sections) for piece in pieces] == [
        ("No section.", "", ()),
        ("Grease is applied in April.", "Care", ("Care",)),
        ("Grease is applied in April.", "Care > Grease", ("Care > Grease",)),
        ("Grease is applied in April.", "Care > Grease", ("Care > Grease",)),
        ("The end.", "End", ("End",)),
    ]
    (whole,) = cut(text, marks, chunker(count_tokens, 1000, 200), count_tokens)
    assert (whole.section, whole.sections) == ("", ("Care", "Care > Grease", "End"))


def test_a_long_text_is_made_storable_like_a_short_one() -> None:
    assert storable("a\x00b" * 40_000) == "a b" * 40_000
