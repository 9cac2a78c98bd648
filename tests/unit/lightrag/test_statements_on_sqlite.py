"""The ledger's statements are PostgreSQL's. SQLite gets them in its own words."""

import asyncio
import re
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import numpy as np
import pytest

from cragside.domain.document import SourceText
from cragside.domain.indexing import DocumentSort, DocumentStatus, Listing
from cragside.ports.clock import SYSTEM_CLOCK
from cragside.store import documents, driver, exchange, passages, versions
from cragside.store import ledger as whole
from cragside.store.chunking import Entry, Piece
from cragside.store.driver import Always, GraphChange, MentionChange, PartVectors, WhileCurrent
from cragside.store.ledger import Ledger
from cragside.store.sqlite.database import Database
from cragside.store.sqlite.driver import SqliteDriver
from cragside.store.sqlite.exchange import dump, load
from cragside.store.sqlite.translation import Untranslatable, bound, translated

SUBJECTS = (documents, driver, exchange, versions, passages, whole)
_STATEMENT = re.compile(r"(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b")


def statements_of(module: ModuleType) -> list[str]:
    """The statements that a module has as they are, or makes of tables."""
    texts = [value for value in vars(module).values() if isinstance(value, str)]
    if module is exchange:
        texts += [exchange.select(kind) for kind in exchange.TABLES]
        texts += [exchange.insert(table, kind._fields) for kind, (table, _) in exchange.TABLES.items()]
        texts.append(exchange.insert("passage", exchange.PASSAGE))
    return [text for text in texts if _STATEMENT.match(text)]


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    ledger = Ledger(SqliteDriver(Database.acquire(tmp_path / "w")), "w", str.lower)
    yield ledger
    await ledger.driver.close()
    ledger.driver.release()


@pytest.mark.parametrize("module", SUBJECTS, ids=lambda module: module.__name__.rpartition(".")[2])
def test_sqlite_understands_every_statement(module: ModuleType, tmp_path: Path) -> None:
    database = Database.acquire(tmp_path)
    found = statements_of(module)
    for sql in found:
        translation = translated(sql)
        most = max((int(number) for number in re.findall(r"\?(\d+)", translation)), default=0)
        assert database.all(f"EXPLAIN {translation.replace('[]', '')}", [None] * most)
    database.release()
    assert found


@pytest.mark.parametrize("status", [None, "failed"])
@pytest.mark.parametrize("sort", get_args(DocumentSort))
def test_sqlite_understands_every_list(sort: DocumentSort, status: DocumentStatus | None, tmp_path: Path) -> None:
    database = Database.acquire(tmp_path)
    wanted = Listing(sort=sort, search="İstanbul", unread=True, file_type="md", descending=True)
    versions, total, values = documents.chosen(wanted, status, "track")
    assert database.all(translated(versions), values) == []
    assert database.one(translated(total), values) == (0,)
    database.release()


@pytest.mark.parametrize(
    ("sql", "left"),
    [
        ("SELECT count(*) FROM crag.part WHERE version = ANY(SELECT 1)", "ANY"),
        ("UPDATE crag.document SET store = $2 WHERE store = $1", "store"),
        ("SELECT $1", "$1"),
        ("SELECT name::varchar(9) FROM crag.document WHERE id = $2 FOR UPDATE", "FOR UPDATE"),
        ('SELECT name FROM crag.document ORDER BY name COLLATE "de-x-icu"', "COLLATE"),
        ("SELECT each.* FROM crag.part CROSS JOIN LATERAL (SELECT 1) AS each", "LATERAL"),
        ("SELECT md5(name) FROM crag.document", "md5"),
    ],
)
def test_a_statement_with_a_word_that_sqlite_has_not_is_refused(sql: str, left: str) -> None:
    with pytest.raises(Untranslatable, match=re.escape(repr(left))):
        translated(sql)


def test_lists_are_values_whatever_is_in_them(tmp_path: Path) -> None:
    database = Database.acquire(tmp_path)
    texts = ["", "a'b", 'a"b', "[1]", "ü\n", "😀"]
    asked = "SELECT $2 = ANY($3)"
    assert all(database.one(*bound(asked, [text, texts])) == (1,) for text in texts)
    assert database.one(*bound(asked, ["1", texts])) == (0,)
    assert database.one(*bound(asked, [2, [1, 2]])) == (1,)
    assert database.one(*bound(asked, [2, []])) == (0,)
    digests = "SELECT $2 = ANY($3::bytea[])"
    assert database.one(*bound(digests, [b"\0\xff", [b"", b"\0\xff"]])) == (1,)
    assert database.one(*bound(digests, [b"\0", [b"", b"\0\xff"]])) == (0,)
    assert database.all(*bound("SELECT 1 WHERE $2 = ANY($3::bytea[])", [b"", []])) == []
    database.release()


async def stepped(ledger: Ledger, writing: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that may wait, but never within a transaction."""
    task = asyncio.ensure_future(writing)
    while not task.done():
        await asyncio.sleep(0)
        assert not ledger.driver.database.in_transaction
    return await task


async def test_rows_are_taken_in_without_suspending_within_a_transaction(ledger: Ledger, tmp_path: Path) -> None:
    entry = Entry(
        "doc-a", "one", "one", SourceText("a.md", "Swan."), [Piece("Swan.", 2, None, "", ())], 20, enrich=True
    )
    await ledger.enter(entry)
    other = Ledger(SqliteDriver(Database.acquire(tmp_path / "other")), "w", str.lower)
    await stepped(other, load(tmp_path / "other", dump(tmp_path / "w"), str.lower, SYSTEM_CLOCK))
    assert await other.record("doc-a") == await ledger.record("doc-a")
    assert await other.tasks() == await ledger.tasks() != []
    other.driver.release()


async def test_no_write_suspends_within_its_transaction(ledger: Ledger) -> None:
    source = SourceText("a.md", "Swan made a lamp.")
    passage = Piece(source.text, 4, None, "", ())
    lease = await stepped(ledger, ledger.driver.take_lease("documents", "me", 30))
    assert lease is not None
    writer = ledger.with_leases(lease)
    for digest in ("one", "two"):
        entry = Entry("doc-a", digest, digest, source, [passage], part_passages=20, enrich=True)
        await stepped(writer, writer.enter(entry))
        for task in await writer.tasks():
            part = await writer.part(task)
            assert part is not None
            keys = await writer.chunk_ids(part)
            rows = {key: {"content": source.text} for key in keys}
            vectors = PartVectors(task.document_id, part, rows, np.ones((len(keys), 4), np.float32))
            await stepped(writer, writer.enter_vectors([vectors], "m"))
            await stepped(writer, writer.begin_enrichment(part))
            await stepped(writer, writer.give_back(part))
            await stepped(writer, writer.mark_failed(part, "enrich", "no model"))
            await stepped(writer, writer.annotate(part, [{"keywords": []} for _ in keys], {"summary": ""}))
            named = GraphChange({"Swan": {}}, mentions=[MentionChange("entity", [], [], [("Swan", keys[0])])])
            assert await stepped(writer, writer.apply(named, WhileCurrent([(part, {})]), "m"))
    await stepped(writer, writer.claim("doc-a", "folder/b.md", "b.md"))
    await stepped(writer, writer.describe("doc-a", SourceText("c.md", source.text), "track"))
    await stepped(writer, writer.want_enrichment("doc-a"))
    await stepped(writer, writer.requeue(None, force=True))
    await stepped(writer, writer.keep_vectors("m", "doc-a", ["text"], np.ones((1, 4), np.float32), most=9))
    assert await stepped(writer, writer.retire("doc-a"))
    assert await stepped(writer, writer.apply(GraphChange(), Always(), "m"))
    await stepped(writer, writer.drop_swept())
    assert await stepped(ledger, ledger.driver.renew_lease(lease, 30))
    await stepped(ledger, ledger.driver.return_lease(lease))
