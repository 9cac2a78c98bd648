import pytest

from cragside.domain.syncing import FileState, KnownDocument, Move, Plan, plan, removes_much


def file(source: str, digest: str) -> FileState:
    return FileState(source, source.rpartition("/")[2], digest)


def document(source: str, digest: str) -> KnownDocument:
    return KnownDocument(f"doc-{source}", source, source.rpartition("/")[2], digest)


def test_new_changed_and_unchanged_files_are_distinguished() -> None:
    files = [file("/f/new", "1"), file("/f/changed", "2"), file("/f/same", "3")]
    made = plan(files, [document("/f/changed", "0"), document("/f/same", "3")])
    assert made == Plan(added=(files[0],), changed=(files[1],), unchanged=(files[2],))


def test_the_document_of_a_removed_file_is_removed() -> None:
    assert plan([], [document("/f/a", "1")]) == Plan(removed=(document("/f/a", "1"),))


def test_a_file_of_the_same_text_elsewhere_is_a_move() -> None:
    made = plan([file("/f/b", "1")], [document("/f/a", "1")])
    assert made == Plan(moved=(Move(document("/f/a", "1"), file("/f/b", "1")),))


def test_a_copy_is_no_move() -> None:
    made = plan([file("/f/a", "1"), file("/f/b", "1")], [document("/f/a", "1")])
    assert (made.added, made.moved, made.removed) == ((file("/f/b", "1"),), (), ())


def test_among_equal_texts_the_file_with_the_same_name_is_the_move() -> None:
    files = [file("/f/new/x", "1"), file("/f/new/a", "1"), file("/f/new/y", "1")]
    made = plan(files, [document("/f/a", "1"), document("/f/b", "1")])
    assert [(move.document.source, move.to.source) for move in made.moved] == [
        ("/f/a", "/f/new/a"),
        ("/f/b", "/f/new/x"),
    ]
    assert made.added == (file("/f/new/y", "1"),)


def test_a_move_with_another_text_is_an_addition_and_a_removal() -> None:
    made = plan([file("/f/b", "2")], [document("/f/a", "1")])
    assert (made.added, made.removed) == ((file("/f/b", "2"),), (document("/f/a", "1"),))


def test_two_files_that_changed_places_are_two_changes() -> None:
    files = [file("/f/a", "2"), file("/f/b", "1")]
    assert plan(files, [document("/f/a", "1"), document("/f/b", "2")]) == Plan(changed=tuple(files))


def test_kept_documents_are_neither_removed_nor_moved() -> None:
    made = plan([file("/f/b", "1")], [document("/f/a", "1")], kept={"/f/a"})
    assert made == Plan(added=(file("/f/b", "1"),))


def test_a_case_only_rename_is_a_move() -> None:
    made = plan([file("/f/a.md", "1")], [document("/f/A.md", "1")])
    assert [move.to.name for move in made.moved] == ["a.md"]


@pytest.mark.parametrize(
    ("removed", "known", "much"),
    [(0, 0, False), (0, 9, False), (1, 10, False), (2, 10, True), (1, 9, True), (1, 1, True), (10, 100, False)],
)
def test_more_than_a_tenth_and_all_are_much(removed: int, known: int, much: bool) -> None:
    assert removes_much(removed, known) is much
