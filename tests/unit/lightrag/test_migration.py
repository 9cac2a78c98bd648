"""A store of the first format is taken over whole."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.settings import load_settings

HOUSE = "Cragside is a house in Northumberland. William Armstrong built Cragside."
LAMP = "Joseph Swan made a lamp in Gateshead. William Armstrong knew Joseph Swan."


async def first_format(home: Path) -> None:
    """What the first format holds: one document indexed, one whose indexing was interrupted."""
    container = Container(load_settings({"RAG_HOME": str(home)}))
    repository = await container.workspaces.repository("default")
    await repository.save_documents([SourceText("house.md", HOUSE, "The house")])
    await container.close()
    with closing(sqlite3.connect(home / "default" / "store.sqlite3", isolation_level=None)) as connection:
        run = connection.execute
        run("CREATE TABLE source (doc_id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, title TEXT NOT NULL)")
        (key, identifier), chunks = (
            run("SELECT key, id FROM part JOIN document USING (version)").fetchone(),
            [row[0] for row in run("SELECT id FROM chunk ORDER BY number")],
        )
        documents = (
            (key, "house.md", "The house", HOUSE, "processed", chunks),
            ("doc-x", "lamp.md", "Lamp", LAMP, "failed", ["gone-1"]),
        )
        for doc, name, title, text, status, passages in documents:
            run("INSERT INTO source VALUES (?, ?, ?)", (doc, name, title))
            run("INSERT INTO kv VALUES ('full_docs', ?, ?)", (doc, json.dumps({"content": text})))
            run(
                "INSERT INTO doc_status VALUES (?, ?, '2026-01-01', '2026-01-02', ?, NULL, NULL, NULL, ?)",
                (doc, status, name, json.dumps({"status": status, "chunks_list": passages})),
            )
        for kind in ("entity", "relation"):
            for (name,) in run("SELECT DISTINCT name FROM mention WHERE kind = ?", (kind,)).fetchall():
                run("INSERT INTO kv VALUES (?, ?, ?)", (f"{kind}_chunks", name, json.dumps({"chunk_ids": chunks})))
        assert identifier
        for table in ("document", "part", "chunk", "mention", "embedding", "origin"):
            run(f"DROP TABLE {table}")
        for index in ("node_by_name", "edge_by_source", "edge_by_target"):
            run(f"DROP INDEX {index}")
        run("CREATE INDEX edge_by_target ON edge (target)")
        run("PRAGMA user_version = 1")


async def test_a_store_of_the_first_format_keeps_its_documents_and_their_passages(tmp_path: Path) -> None:
    await first_format(tmp_path)
    container = Container(load_settings({"RAG_HOME": str(tmp_path)}))
    library = await container.workspaces.library("default")
    house = await library.sourced("house.md")
    assert house is not None
    assert (house.title, house.status, house.passages, house.created_at) == ("The house", "enriched", 1, "2026-01-01")
    assert [passage.text for passage in await library.passages(house.id)] == [HOUSE]
    repository = await container.workspaces.repository("default")
    best = (await repository.retrieve("Who built Cragside?", limit=1))[0]
    assert (best.content, best.title, best.metadata["filename"]) == (HOUSE, "The house", "house.md")
    assert (await library.accept(SourceText("house.md", HOUSE))).outcome == "unchanged"
    assert await library.delete(house.id)
    status = await repository.status()
    assert (status.documents, status.passages, status.entities, status.relations) == (1, 0, 0, 0)
    await container.close()


async def test_a_text_whose_indexing_was_interrupted_is_indexed_when_work_is_taken_up_again(tmp_path: Path) -> None:
    await first_format(tmp_path)
    container = Container(load_settings({"RAG_HOME": str(tmp_path)}))
    library = await container.workspaces.library("default")
    indexer = await container.workspaces.part_indexer("default")
    for task in await library.restart():
        await (indexer.embed if task.stage == "embed" else indexer.extend_graph)(task)
    lamp = await library.sourced("lamp.md")
    assert lamp is not None
    assert (lamp.status, (await library.documents())[1]) == ("enriched", 2)
    repository = await container.workspaces.repository("default")
    assert (await repository.retrieve("Who made a lamp in Gateshead?", limit=1))[0].content == LAMP
    await container.close()
