"""Places of passages in the text of their document."""

from cragside.domain.document import Mark, SourceText
from cragside.domain.indexing import Passage, place_of


def passages(*texts: str, pages: tuple[int | None, ...] = ()) -> list[Passage]:
    numbered = enumerate(texts)
    return [Passage(f"p{n}", "d", 0, n, text, page=pages[n] if pages else None) for n, text in numbered]


def test_equal_lines_are_told_apart_by_their_order() -> None:
    text = "A line.\n\nA line.\n\nA line."
    found = passages("A line.", "A line.", "A line.")
    source = SourceText("a.md", text)
    assert [place_of(each, found, source) for each in found] == [(0, 7), (9, 16), (18, 25)]


def test_overlapping_passages_have_overlapping_places() -> None:
    found = passages("one two three", "three four")
    source = SourceText("a.md", "one two three four")
    assert [place_of(each, found, source) for each in found] == [(0, 13), (8, 18)]


def test_a_passage_is_looked_for_on_its_own_page() -> None:
    text = "Head\nFirst page. Head\nHead\nSecond page."
    source = SourceText("a.pdf", text, marks=(Mark(0, page=1), Mark(22, page=2)))
    first, second = passages("Head\nFirst page.", "Head", pages=(1, 2))
    assert place_of(second, [first, second], source) == (22, 26)


def test_a_passage_that_is_not_there_has_no_place_and_leaves_the_others_theirs() -> None:
    found = passages("one", "gone", "two")
    source = SourceText("a.md", "one two")
    assert [place_of(each, found, source) for each in found] == [(0, 3), None, (4, 7)]
