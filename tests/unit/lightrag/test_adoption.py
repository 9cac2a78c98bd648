"""Documents from before sources were known: what brings them again finds them, and nothing is lost."""

import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.ports.library import Library
from cragside.settings import load_settings

OLD = "Buy lamps.\n\nCall Anna Berg.\n   \nOil the hinges.\nPay the Harbour Board."
W1 = "/home/ann/notes/w1/todo.md"


def older(home: Path) -> None:
    """Make the store one of the second format."""
    with closing(sqlite3.connect(home / "default" / "store.sqlite3", isolation_level=None)) as connection:
        connection.execute("DROP TABLE origin")
        connection.execute("DROP INDEX document_by_name")
        connection.execute("CREATE UNIQUE INDEX document_by_name ON document (name) WHERE state = 'current'")
        connection.execute("PRAGMA user_version = 2")


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[tuple[Container, Library]]:
    container = Container(load_settings({"RAG_HOME": str(home)}))
    try:
        yield container, (await container.workspaces.open("default")).documents
    finally:
        await container.close()


async def made_before(home: Path, texts: Mapping[str, str]) -> dict[str, str]:
    """A store of the second format with these texts by name; the documents' ids by name."""
    async with opened(home) as (_, library):
        ids = {name: (await library.accept(SourceText(name, text))).record.id for name, text in texts.items()}
    older(home)
    return ids


async def listed(library: Library) -> dict[str, str]:
    """Texts by sources."""
    records, _ = await library.documents()
    return {record.source: known.text for record in records if (known := await library.source(record.id))}


async def test_a_store_of_the_second_format_answers_and_its_documents_have_their_names_for_sources(
    tmp_path: Path,
) -> None:
    ids = await made_before(tmp_path, {"todo.md": OLD})
    async with opened(tmp_path) as (_, library):
        record = await library.sourced("todo.md")
        assert record is not None
        assert (record.id, record.source, record.label) == (ids["todo.md"], "todo.md", "todo.md")
        assert await library.named("todo.md") == [record]
        assert (await library.accept(SourceText("todo.md", OLD))).outcome == "unchanged"
        assert (await library.accept(SourceText("todo.md", "Sell oil."))).outcome == "changed"


@pytest.mark.parametrize("name", ["todo.md", "w1/todo.md", "notes/w1/todo.md", "ann/notes/w1/todo.md"])
@pytest.mark.parametrize("brought_as", ["todo.md", "w1/todo.md"])
async def test_a_file_finds_its_document_whichever_folder_was_given_then_and_now(
    tmp_path: Path, name: str, brought_as: str
) -> None:
    ids = await made_before(tmp_path, {name: OLD, "other.md": "Something else."})
    async with opened(tmp_path) as (_, library):
        again = await library.accept(SourceText(brought_as, OLD, source=W1))
        assert (again.outcome, again.record.id, again.record.source) == ("unchanged", ids[name], W1)
        assert again.record.name == brought_as
        assert (await library.documents())[1] == 2
        # From now on it is that file's and nobody else's.
        beside = await library.accept(SourceText(brought_as, OLD, source="/home/bob/w1/todo.md"))
        upload = await library.accept(SourceText(name, OLD))
        assert (beside.outcome, upload.outcome) == ("new", "new")
        assert len({again.record.id, beside.record.id, upload.record.id}) == 3


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (OLD + "\nSell oil.", "changed"),
        ("Pay the Harbour Board.\n  Buy lamps.\nCall Anna Berg.", "changed"),
        ("Buy lamps.\nCall Anna Berg.", "new"),
        ("Sell oil.\n" * 50, "new"),
    ],
)
async def test_a_document_is_taken_over_by_a_text_that_has_most_of_its_lines(
    tmp_path: Path, text: str, outcome: str
) -> None:
    ids = await made_before(tmp_path, {"todo.md": OLD})
    async with opened(tmp_path) as (_, library):
        brought = await library.accept(SourceText("todo.md", text, source=W1))
        assert (brought.outcome, brought.record.source) == (outcome, W1)
        assert (brought.record.id == ids["todo.md"]) is (outcome == "changed")
        expected = {W1: text} if outcome == "changed" else {W1: text, "todo.md": OLD}
        assert await listed(library) == expected


async def test_an_equal_text_is_adopted_before_a_similar_one(tmp_path: Path) -> None:
    like, same = OLD + "\nOne more line.", OLD
    ids = await made_before(tmp_path, {"todo.md": like, "w1/todo.md": same})
    async with opened(tmp_path) as (_, library):
        brought = await library.accept(SourceText("todo.md", same, source=W1))
        assert (brought.outcome, brought.record.id) == ("unchanged", ids["w1/todo.md"])
        assert await listed(library) == {W1: same, "todo.md": like}


async def test_names_that_only_resemble_a_path_are_not_adopted(tmp_path: Path) -> None:
    texts = {"o.md": OLD, "1/todo.md": OLD, "w2/todo.md": OLD, "https://x.example/w1/todo.md": OLD}
    await made_before(tmp_path, texts)
    async with opened(tmp_path) as (_, library):
        assert (await library.accept(SourceText("todo.md", OLD, source=W1))).outcome == "new"
        page = SourceText("The list", OLD, source="https://y.example/w2/todo.md")
        assert (await library.accept(page)).outcome == "new"
        assert (await library.documents())[1] == len(texts) + 2


async def test_two_files_that_shared_a_name_are_two_documents_afterwards(tmp_path: Path) -> None:
    first, second = OLD, "Sell oil.\nWrite to Sven Lind."
    ids = await made_before(tmp_path, {"todo.md": second})
    async with opened(tmp_path) as (_, library):
        for folder, text in (("w1", first), ("w2", second), ("w1", first), ("w2", second)):
            await library.accept(SourceText("todo.md", text, source=f"/home/ann/{folder}/todo.md"))
        assert await listed(library) == {"/home/ann/w1/todo.md": first, "/home/ann/w2/todo.md": second}
        known = await library.sourced("/home/ann/w2/todo.md")
        assert known is not None
        assert known.id == ids["todo.md"]


async def test_reindexing_a_store_of_format_2_keeps_its_adoptable_documents(tmp_path: Path) -> None:
    ids = await made_before(tmp_path, {"todo.md": OLD})
    async with opened(tmp_path) as (container, library):
        claimed = await library.accept(SourceText("done.md", "Oil the lamp.", source="/home/ann/done.md"))
        await container.workspaces.reindex("default", lambda _: None)
    async with opened(tmp_path) as (_, library):
        assert await library.sourced("/home/ann/done.md") is not None
        assert (await library.accept(SourceText("done.md", "Oil.", source="/home/ann/done.md"))).outcome == "changed"
        assert claimed.record.id != ids["todo.md"]
        again = await library.accept(SourceText("todo.md", OLD, source=W1))
        assert (again.record.id, again.record.source) == (ids["todo.md"], W1)
