"""A worker that is killed at a hundred random moments loses nothing and doubles nothing."""

import asyncio
import json
import multiprocessing
import os
import random
import signal
import sqlite3
import time
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, closing
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from pydantic import SecretStr

from cragside.adapters.embedded.language import iso_639_1
from cragside.adapters.local.queue import FILE_NAME
from cragside.bootstrap import Container, preload
from cragside.domain.document import SourceText
from cragside.domain.search import SimilaritySearch
from cragside.settings import Settings
from tests.services.backends import migrated

if TYPE_CHECKING:
    from tests.services.postgres import Postgres

SEED = int(os.environ.get("KILL_SEED", "20261122"))
WORKSPACES = ("garden", "harbour", "library")
FORK = multiprocessing.get_context("fork")

Change = tuple[str, str, str]
"""A workspace, a document's name, and its text; "" deletes it."""


class Place(Protocol):
    """A store with its queue."""

    def settings(self) -> Settings: ...

    def statistics(self) -> tuple[int, int, int]:
        """Tasks that wait, tasks in hand, dead letters."""

    def contents(self, workspace: str) -> dict[str, Any]:
        """All that a workspace holds, but for the order in which it came and the times."""


def settings(home: Path, **more: Any) -> Settings:
    # Small passages and parts: more moments at which something is half done.
    given: dict[str, Any] = {"chunk_tokens": 50, "chunk_overlap_tokens": 10, "part_passages": 2, "index_parallel": 6}
    return Settings(home=home, **given, **more)


def text(chance: random.Random) -> str:
    """Some paragraphs that name people and places."""

    def name() -> str:
        return (
            f"{chance.choice('BDFGKLMNPRST')}{chance.choice('aeiou')}{chance.choice(('rlin', 'ndor', 'lvek', 'stro'))}"
        )

    paragraphs = []
    for _ in range(chance.randint(2, 6)):
        who, where, other = f"{name()} {name()}", f"{name()} Bridge", f"{name()} {name()}"
        paragraphs.append(
            f"{who} built the {where} together with {other} in {chance.randint(1700, 1999)}. "
            f"The {where} was paid for by {other}, whose letters call it a folly number {chance.randint(0, 10**6)}. "
            f"{who} never went back."
        )
    return "\n\n".join(paragraphs)


class Script:
    """What is brought, changed and deleted, by chance; `texts` is what should be there in the end."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._count = 0
        self.texts: dict[tuple[str, str], str] = {}

    def next(self) -> Change:
        kind = self._chance.random()
        if kind < 0.5 or len(self.texts) < 3:
            self._count += 1
            change = WORKSPACES[self._count % 3], f"text-{self._count}.md", text(self._chance)
        else:
            workspace, name = self._chance.choice(sorted(self.texts))
            change = workspace, name, "" if kind > 0.8 else text(self._chance)
        self.texts[change[:2]] = change[2]
        if not change[2]:
            del self.texts[change[:2]]
        return change


def forked(target: Callable[..., None], *arguments: Any) -> Any:
    process = FORK.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process


def with_container(place: Place, work: Callable[[Container], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        container = Container(place.settings())
        try:
            await work(container)
        finally:
            await container.close()

    asyncio.run(run())


def brings(place: Place, orders: Connection) -> None:
    """The server's part: takes documents in, as its routes do, while the workers live and die."""

    async def serve(container: Container) -> None:
        while (change := await asyncio.to_thread(orders.recv)) is not None:
            workspace, name, wanted = change
            library = (await container.workspaces.open(workspace)).documents
            if wanted:
                acceptance = await library.accept(SourceText(name, wanted))
                await container.queue.send(acceptance.tasks)
            else:
                record = await library.sourced(name)
                assert record is not None
                await container.queue.discard(workspace=workspace, document_id=record.id)
                assert await library.delete(record.id)
            orders.send("taken")

    with_container(place, serve)


def works(place: Place, until_idle: bool, told: Connection | None = None) -> None:
    async def work(container: Container) -> None:
        await container.worker().run(until_idle=until_idle, progress=told and (lambda _: told.send(1)))

    with_container(place, work)


@dataclass(frozen=True)
class InFiles:
    """SQLite files below a folder."""

    home: Path

    def settings(self) -> Settings:
        return settings(self.home)

    def statistics(self) -> tuple[int, int, int]:
        with closing(sqlite3.connect(self.home / FILE_NAME, timeout=30)) as queue:
            row = queue.execute("SELECT count(*) - count(lease), count(lease), (SELECT count(*) FROM dead) FROM task")
            return tuple(row.fetchone())  # type: ignore[return-value]

    def contents(self, workspace: str) -> dict[str, Any]:
        with closing(sqlite3.connect(self.home / workspace / "store.sqlite3")) as store:
            ask = store.execute
            parts = "SELECT part.key, number, first, last, embedded, enrichment, error, tier3 FROM part"
            edges = "SELECT source, target, value FROM edge"
            return {
                "documents": sorted(ask("SELECT id, content_hash, name, state, text FROM document").fetchall()),
                "parts": sorted(ask(parts).fetchall()),
                "passages": sorted(ask("SELECT id, part, number, section, tier2 FROM chunk").fetchall()),
                "texts": sorted(ask("SELECT id FROM kv WHERE namespace = 'text_chunks'").fetchall()),
                "words": ask("SELECT count(*) FROM passage").fetchone(),
                "vectors": sorted(ask("SELECT id, vector FROM vector WHERE namespace = 'chunks'").fetchall()),
                "graph vectors": sorted(ask("SELECT namespace, id FROM vector WHERE namespace <> 'chunks'").fetchall()),
                "mentions": sorted(ask("SELECT kind, name, passage FROM mention").fetchall()),
                "nodes": {
                    key: (facts(value), degree) for key, value, degree in ask("SELECT id, value, degree FROM node")
                },
                "edges": {(one, two): facts(value) for one, two, value in ask(edges)},
            }


@dataclass(frozen=True)
class InPostgres:
    """A database of PostgreSQL."""

    home: Path
    uri: str

    def settings(self) -> Settings:
        return settings(self.home, postgres_uri=SecretStr(self.uri))

    def statistics(self) -> tuple[int, int, int]:
        counts = "count(*) - count(lease), count(lease), (SELECT count(*) FROM cragside.dead_task)"
        return self._rows(f"SELECT {counts} FROM cragside.task")[0]  # type: ignore[return-value]

    def contents(self, workspace: str) -> dict[str, Any]:
        ((store, key),) = self._rows("SELECT id, key FROM cragside.store WHERE workspace = $1", workspace)
        documents = "SELECT version, id, content_hash, name, state, text FROM cragside.document WHERE store = $1"
        versions = {row[0]: row[2] for row in self._rows(documents, store)}
        parts = """SELECT part.version, number, key, first, last, embedded, enrichment, error, tier3
            FROM cragside.part JOIN cragside.document USING (version) WHERE store = $1"""
        vectors = [
            row[0] for row in self._rows("SELECT table_name FROM information_schema.tables") if "_vdb_" in row[0]
        ]
        return {
            "documents": sorted(row[1:] for row in self._rows(documents, store)),
            "parts": sorted((versions[row[0]], *row[1:]) for row in self._rows(parts, store)),
            "passages": self._sorted(
                "id, part, number, section, tier2, text FROM cragside.passage WHERE store = $1", store
            ),
            "texts": self._sorted("id, content FROM lightrag_doc_chunks WHERE workspace = $1", key),
            "words": self._sorted("id, words::text, vector::text FROM cragside.searched WHERE store = $1", store),
            "vectors": {name: self._sorted(f"id FROM {name} WHERE workspace = $1", key) for name in vectors},
            "mentions": self._sorted("kind, name, passage FROM cragside.mention WHERE store = $1", store),
            "nodes": {
                name: facts(value)
                for name, value in self._rows(
                    "SELECT id, properties FROM lightrag_graph_nodes WHERE workspace = $1", key
                )
            },
            "edges": {
                (one, two): facts(value)
                for one, two, value in self._rows(
                    "SELECT src_id, tgt_id, properties FROM lightrag_graph_edges WHERE workspace = $1", key
                )
            },
        }

    def _sorted(self, what: str, *values: Any) -> list[Any]:
        return sorted(self._rows(f"SELECT {what}", *values))

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        async def ask() -> list[tuple[Any, ...]]:
            import asyncpg

            connection = await asyncpg.connect(self.uri)
            try:
                return [tuple(row) for row in await connection.fetch(sql, *values)]
            finally:
                await connection.close()

        return asyncio.run(ask())


def facts(value: str) -> dict[str, Any]:
    """What a node or an edge says, in any order."""
    known = json.loads(value)
    kept = {name: sorted(str(known[name]).split("<SEP>")) for name in ("source_id", "description", "file_path")}
    return {**kept, "weight": known.get("weight"), "type": known.get("entity_type")}


async def check_what_is_found(place: Place, texts: dict[tuple[str, str], str]) -> None:
    container = Container(place.settings())
    try:
        for (workspace, name), held in texts.items():
            library = (await container.workspaces.open(workspace)).documents
            record = await library.sourced(name)
            assert record is not None
            assert (record.status, record.enrichment, record.error) == ("enriched", "enriched", "")
            passages = await library.passages(record.id)
            assert len(passages) == record.passages > 0
            assert all(passage.tier2 is not None and passage.enrichment == "enriched" for passage in passages)
            assert sum(len(passage.text) for passage in passages) >= len(held) * 0.9
            repository = (await container.workspaces.open(workspace)).passages
            for passage in passages:
                found = await repository.similar(SimilaritySearch(passage.text, limit=3, threshold=0.99))
                assert passage.id in [document.id for document in found]
        for workspace in WORKSPACES:
            assert set(await (await container.workspaces.open(workspace)).documents.counts()) <= {"enriched"}
    finally:
        await container.close()


def test_a_worker_killed_at_a_hundred_moments_loses_nothing_and_doubles_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disturbed, undisturbed = InFiles(tmp_path / "disturbed"), InFiles(tmp_path / "undisturbed")
    told = kill_at_random(disturbed, undisturbed, workers=1, kills=100)
    with capsys.disabled():
        print(f"\n{told}")


def test_workers_killed_beside_another_on_postgres_lose_nothing_and_double_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], postgres: "Postgres"
) -> None:
    with ExitStack() as stack:
        disturbed, undisturbed = (
            InPostgres(tmp_path / name, stack.enter_context(migrated(postgres)))
            for name in ("disturbed", "undisturbed")
        )
        told = kill_at_random(disturbed, undisturbed, workers=2, kills=50)
    with capsys.disabled():
        print(f"\n{told}")


def kill_at_random(disturbed: Place, undisturbed: Place, *, workers: int, kills: int) -> str:
    """Kill one of the workers at random moments while documents come, change and go; compare with a calm store."""
    preload(disturbed.settings())
    # Workers are forked with the model that tells languages, rather than read it a hundred times.
    assert iso_639_1("The lighthouse keeper lit the lamp at dusk.") == "en"
    chance, script = random.Random(SEED), Script(SEED)
    orders, theirs = FORK.Pipe()
    server = forked(brings, disturbed, theirs)

    def bring() -> None:
        orders.send(script.next())
        assert orders.poll(60)
        assert orders.recv() == "taken"

    def started() -> tuple[Connection, Any]:
        ours, told = FORK.Pipe()
        return ours, forked(works, disturbed, False, told)

    began, busy = time.monotonic(), 0
    for _ in range(4):
        bring()
    running = [started() for _ in range(workers)]
    for _ in range(kills):
        ours, worker = running.pop(chance.randrange(workers))
        # So many tasks later, whatever the machine's speed, and then anywhere in what comes next.
        left, patience = chance.randint(-1, 4), time.monotonic() + 10
        while left > 0 and time.monotonic() < patience:
            if sum(disturbed.statistics()) < 30 and chance.random() < 0.8:
                bring()
            while left > 0 and ours.poll(0.02):
                left -= ours.recv()
        time.sleep(chance.uniform(0.0, 0.3 if left < 0 else 0.1))
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        assert worker.exitcode == -signal.SIGKILL, "the worker ended before it was killed"
        busy += disturbed.statistics()[1] > 0
        running.append(started())
    for _, worker in running:
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
    orders.send(None)
    server.join(30)
    assert server.exitcode == 0
    finish(disturbed)
    seconds = time.monotonic() - began
    reference, theirs = FORK.Pipe()
    server = forked(brings, undisturbed, theirs)
    for (workspace, name), held in script.texts.items():
        reference.send((workspace, name, held))
        assert reference.recv() == "taken"
    reference.send(None)
    server.join(30)
    finish(undisturbed)

    assert busy >= kills / 2, "too few kills hit anything"
    assert disturbed.statistics() == (0, 0, 0)
    for workspace in WORKSPACES:
        there, wanted = disturbed.contents(workspace), undisturbed.contents(workspace)
        for kind in wanted:
            assert there[kind] == wanted[kind], f"{workspace}: {kind}"
    asyncio.run(check_what_is_found(disturbed, script.texts))
    return (
        f"seed {SEED}: {kills} kills in {seconds:.0f} s, {busy} of them with tasks in hand; "
        f"{script._count} documents brought, {len(script.texts)} there in the end"
    )


def finish(place: Place) -> None:
    """Have a last worker do what is left."""
    last = forked(works, place, True)
    last.join(300)
    assert last.exitcode == 0
