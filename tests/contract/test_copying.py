"""A workspace that is copied to another database answers as it did before, and so does its copy when it comes back."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cragside.bootstrap import Container
from cragside.composition.store_files import Copies
from cragside.domain.document import Mark
from cragside.domain.evidence import Document
from cragside.domain.names import memory_of
from cragside.domain.query import Query
from cragside.ports.embedder import Vectors
from cragside.settings import load_settings
from cragside.store.backends.interface import Backend
from cragside.store.exchange import (
    DocumentRow,
    EdgeRow,
    FactsRow,
    NodeRow,
    PartRow,
    PassageRow,
    ValueRow,
    VectorRow,
)
from tests.indexing import ARMSTRONG, LONG, SMALL_PARTS, SWAN, delete, take, text
from tests.services.backends import BACKENDS, SERVERS, THROUGH_POOLER, made

QUESTIONS = ("Who built Cragside?", "Where did Joseph Swan live?", "Which bridge is number 8?")


# A copy is read from one kind and written to another by way of the same rows. So each kind is read once and written
# once, and only neighbours in one database are more.
PAIRS = [
    *((kind, "sqlite") for kind in (*BACKENDS, THROUGH_POOLER)),
    *(("sqlite", kind) for kind in SERVERS),
    *pairwise(SERVERS),
]


def paired(*kinds: Any) -> Any:
    each = [pytest.param(kind) if isinstance(kind, str) else kind for kind in kinds]
    return pytest.param(*(kind.values[0] for kind in each), marks=[mark for kind in each for mark in kind.marks])


from_and_to = pytest.mark.parametrize(("backend", "other_backend"), [paired(*pair) for pair in PAIRS], indirect=True)


@pytest.fixture
def other_backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    with made(request) as backend:
        yield backend


@pytest.fixture
async def source(tmp_path: Path, backend: Backend) -> AsyncIterator[Container]:
    container = opened(tmp_path / "source", backend)
    await fill(container)
    await tidied(container)
    yield container
    await container.close()


@pytest.fixture
async def target(tmp_path: Path, other_backend: Backend) -> AsyncIterator[Container]:
    container = opened(tmp_path / "target", other_backend)
    yield container
    await container.close()


def opened(home: Path, backend: Backend) -> Container:
    return Container(load_settings({"RAG_HOME": str(home), **SMALL_PARTS}), backend=backend)


async def tidied(container: Container) -> None:
    """Wait until the store is tidied, which happens beside its use and changes rows."""
    ledger = await container.backend.open_ledger(container.folder / "w", "w", search_text=str.lower)
    for _ in range(200):
        if not await ledger.driver.is_untidy():
            break
        await asyncio.sleep(0.05)
    ledger.driver.release()


async def fill(container: Container) -> None:
    """Documents with all that can be known of them, one in two versions, one deleted, one waiting; and an exchange."""
    workspace = await container.workspaces.open("w")
    library, indexer = workspace.documents, workspace.work
    await take(library, indexer, text("a.md", ARMSTRONG, title="A house", metadata={"team": "x", "n": 2**60}))
    await take(library, indexer, text("b c.md", SWAN, tier1={"pages": 2}, marks=(Mark(0, 1, "One"), Mark(32, 2))))
    await take(library, indexer, text("gone.md", "Lord Kelvin visited Cragside. Lord Kelvin liked Newcastle."))
    gone = await library.sourced("gone.md")
    assert gone is not None
    await delete(library, indexer, gone.id)
    long = await library.accept(text("long.md", LONG))
    for task in long.tasks:
        if task.stage == "embed":
            await indexer.embed(task)
        elif await indexer.begin_enrichment(task):
            await indexer.annotate(task, [{"keywords": ["bridges"]}] * 2, {"summary": "Bridges."})
            await indexer.extend_graph(task)
    await library.accept(text("a.md", f"{ARMSTRONG} It has lamps."))
    await library.accept(text("waiting.md", "The Coquet flows into the North Sea."))
    await workspace.passages.save_query(Query("q1", "Who?", "w", datetime(2026, 1, 2, tzinfo=UTC)))
    memory = await container.workspaces.open(memory_of("w"))
    await take(memory.documents, memory.work, text("exchange-1", "The user likes the lamps of Joseph Swan."))
    await container.preference_store.change("w", {"chunk_tokens": 70})


async def answers(container: Container) -> dict[str, Any]:
    """Return the answers of a workspace and of its memory."""
    found: dict[str, Any] = {"preferences": dict(await container.preference_store.changes("w"))}
    for name in ("w", memory_of("w")):
        workspace = await container.workspaces.open(name)
        library, passages, graph = workspace.documents, workspace.passages, workspace.graph
        records, total = await library.documents()
        told = {
            "records": records,
            "total": total,
            "sources": [await library.source(record.id) for record in records],
            "passages": [await library.passages(record.id) for record in records],
            "status": replace(await passages.status(), embedding_model="", lightrag_workspace=""),
            "counts": await library.counts(),
            "tasks": await library.restart(),
            "stored": await container.workspaces.stored(name),
            "query": await passages.get_query("q1"),
            "retrieved": [_telling(await passages.retrieve(question, limit=8)) for question in QUESTIONS],
            "entity": await graph.entity("William Armstrong"),
            "near": await graph.expand(["Joseph Swan"]),
            "named": await graph.search("a"),
        }
        found |= {f"{name}: {what}": answer for what, answer in told.items()}
    for question in QUESTIONS:
        enrichment = await container.enricher.enrich({"prompt": f"/rag {question}"}, workspace="w")
        context = enrichment.rag_context
        assert context is not None
        found[question] = context.documents, context.verdict
    return found


def _telling(found: list[Document]) -> list[Document]:
    """Return the passages that may become evidence. The irrelevant ones behind them differ by database."""
    return [each for each in found if each.score is not None and each.score > 0.01]


async def check_answers(container: Container, expected: dict[str, Any]) -> None:
    for what, answer in (await answers(container)).items():
        assert (what, answer) == (what, expected[what])


async def copied(source: Container, target: Container, **options: Any) -> int:
    return await Copies(source, target).copy("w", **{"replace": False, "progress": lambda _: None, **options})


@from_and_to
async def test_a_copy_has_all_and_answers_as_its_original_and_so_does_the_copy_of_the_copy(
    source: Container, target: Container, tmp_path: Path, backend: Backend, request: pytest.FixtureRequest
) -> None:
    before = await answers(source)
    assert len(before["w: records"]) == 4
    assert before["w: entity"] is not None
    told: list[int] = []
    assert await copied(source, target, progress=told.append) == 5
    assert told == sorted(told)
    assert told[-1] == 5
    await check_rows(source, target, nearly="qdrant" in request.node.name)
    await check_answers(target, before)
    back = opened(tmp_path / "back", backend)
    # One database of a kind may hold both, so that the original makes room.
    if not await back.workspaces.names():
        assert await copied(target, back) == 5
    else:
        assert await copied(target, back, replace=True) == 5
    await check_answers(back, before)
    await back.close()


async def check_rows(source: Container, target: Container, *, nearly: bool) -> None:
    """All rows are there, bit for bit, but for what LightRAG's tables of a database have no column for.

    Qdrant brings vectors to the length 1 itself, which changes their last bits: then they are `nearly` the same.
    """
    for name in ("w", memory_of("w")):
        before = await rows(source.backend, source.folder / name)
        after = await rows(target.backend, target.folder / name)
        assert before.keys() == after.keys()
        if nearly:
            there, arrived = _without_vectors(before), _without_vectors(after)
            np.testing.assert_allclose(arrived, there, rtol=0, atol=1e-6)
        for kind, expected in before.items():
            assert [row for row in after[kind] if row not in expected] == []
            assert (kind, after[kind]) == (kind, expected)


async def rows(backend: Backend, folder: Path) -> dict[str, list[Any]]:
    """Rows by kinds, but for what databases may number or arrange on their own."""
    found: dict[str, list[Any]] = {}
    numbers: dict[int, int] = {}
    async for batch in backend.dump(folder):
        for row in batch:
            values: Any = row
            if isinstance(row, DocumentRow):
                numbers[row.version] = len(numbers)
                values = _comparable(row._replace(version=numbers[row.version]))
            elif isinstance(row, PartRow | PassageRow):
                values = _comparable(row._replace(version=numbers[row.version]))
            elif isinstance(row, ValueRow | NodeRow | EdgeRow | VectorRow):
                values = _comparable(row)
            elif isinstance(row, FactsRow):
                values = row._replace(untidy=False)  # the store is tidied beside the test
            found.setdefault(type(row).__name__, []).append(values)
    for values in found.values():
        values.sort(key=repr)
    return found


def _without_vectors(found: dict[str, list[Any]]) -> Vectors:
    """Take the vectors from the rows."""
    vectors = [np.frombuffer(dict(row)["vector"], np.float32) for row in found["VectorRow"]]
    found["VectorRow"] = [[(name, value) for name, value in row if name != "vector"] for row in found["VectorRow"]]
    return np.stack(vectors)


def _comparable(row: Any) -> Any:
    """A row with its JSON read, without defaults. What a `gone` version's row says beside its keys has no meaning."""
    if isinstance(row, DocumentRow) and row.state == "gone":
        return row.version, row.id, row.content_hash
    fields = row._asdict()
    for name in ("value", "text", "tier2", "tier3", "tier1", "metadata"):
        if isinstance(told := fields.get(name), str) and told[:1] == "{":
            fields[name] = sorted((key, value) for key, value in json.loads(told).items() if value)
    return tuple(fields.items())
