"""The marks of citations are the same in a text and in its pieces."""

import pytest

from cragside.domain.citations import MarksOfPieces, marks_in

LONGEST, TOO_LONG = "[" + "1, " * 50 + "8]", "[" + "1, " * 60 + "9]"
TEXT = f"So [1] it [2, 3] is[[4]] [ 5;6 ] [12345] [a] [1,, 2] [7\n] {LONGEST} {TOO_LONG} 🦦 [10] [1"


def in_pieces(text: str, size: int) -> MarksOfPieces:
    marks = MarksOfPieces()
    for start in range(0, len(text), size):
        marks.read(text[start : start + size])
    return marks


def test_marks_have_their_places() -> None:
    assert [(number, TEXT[start:end]) for number, start, end in marks_in(TEXT[:32])] == [
        (1, "[1]"),
        (2, "2"),
        (3, "3"),
        (4, "[4]"),
        (5, "5"),
        (6, "6"),
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 17, 1000])
def test_pieces_have_the_marks_of_the_whole(size: int) -> None:
    marks = list(marks_in(TEXT))
    assert [mark.number for mark in marks] == [1, 2, 3, 4, 5, 6, *[1] * 50, 8, 10]
    assert in_pieces(TEXT, size).found == marks


@pytest.mark.parametrize("text", ["x", "[", "[1", "1, ", "[1, "])
def test_nothing_but_a_mark_that_has_begun_is_kept(text: str) -> None:
    marks = in_pieces(text * 10_000, 7)
    assert (marks.found, len(marks._begun) <= 360) == ([], True)


def test_the_first_thousand_marks_are_kept() -> None:
    assert in_pieces("[1]" * 2000, 5).found == list(marks_in("[1]" * 1000))
