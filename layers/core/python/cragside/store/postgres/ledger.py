"""The ledger of a workspace in PostgreSQL, and the driver that runs its statements."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Self
from urllib.parse import quote

import asyncpg
import orjson
from typing_extensions import override

from cragside.databases.lease_holders import is_gone
from cragside.domain.indexing import DocumentRecord, Passage
from cragside.domain.knowledge import KnowledgeStatus
from cragside.ports.embedder import Vectors
from cragside.store.chunking import CutPart
from cragside.store.documents import DOCUMENT, FIELDS, PART_COLUMNS
from cragside.store.driver import HELD, Changed, Driver, GraphChange, Row
from cragside.store.errors import Lease, LedgerError, StoreRemoved
from cragside.store.exchange import SearchText
from cragside.store.ledger import Ledger, Since
from cragside.store.passages import BEGINNING_OF_TEXT, PASSAGE, passage_of
from cragside.store.postgres.lightrag_rows import copy_answers, forget_answers, list_changed
from cragside.store.postgres.schema import translating
from cragside.store.postgres.store import NOW, PostgresStore, since
from cragside.store.postgres.stores import remove_here
from cragside.store.ranking import counted

# ruff: noqa: S608 - statements are put together from names in this module, values are bound


_ADD_PASSAGE = """INSERT INTO crag.passage VALUES ($1, $2, $3, $4, $5, $6, $7, NULL, $8, $9)
    ON CONFLICT (store, id) DO UPDATE SET version = excluded.version, part = excluded.part, number = excluded.number,
    page = excluded.page, section = excluded.section, tier2 = NULL, tokens = excluded.tokens, text = excluded.text"""
# One statement for all rows: each statement counts words (see `schema`).
SEARCHED = """INSERT INTO crag.searched (store, id, words, often, length, vector)
    SELECT $1, id, words::tsvector, often::jsonb, length, vector::vector
    FROM unnest($2::text[], $3::text[], $4::text[], $5::integer[], $6::text[]) WITH ORDINALITY
    AS row (id, words, often, length, vector, place) ORDER BY place"""
_BIND = """UPDATE crag.store SET embedding_model = $2, dimensions = coalesce(dimensions, $3)
    WHERE id = $1 AND (embedding_model IS NULL OR (dimensions IS NULL AND $3::integer IS NOT NULL)) RETURNING 1"""
_TEXTS = """SELECT passage.id, passage.text, passage.tokens, passage.number, part.key, document.name
    FROM crag.passage JOIN crag.document USING (version)
    JOIN crag.part ON part.version = passage.version AND part.number = passage.part
    WHERE passage.store = $1 AND passage.version = $2"""
_COPY_PASSAGES = """INSERT INTO crag.passage SELECT $1, id, $3, part, number, page, section, tier2, tokens, text
    FROM crag.passage WHERE store = $2 AND version = $4"""
# A row that others may be taking is locked, so that the answer holds until the commit.
_SEEN = """SELECT holder, expires > clock_timestamp(), epoch FROM crag.lease
    WHERE store = $1 AND name = $2 FOR UPDATE"""
_TAKE = """INSERT INTO crag.lease VALUES
    ($1, $2, nextval('crag.epoch'), $3, clock_timestamp() + make_interval(secs => $4))
    ON CONFLICT (store, name) DO UPDATE SET epoch = excluded.epoch, holder = excluded.holder, expires = excluded.expires
    WHERE lease.epoch = $5 RETURNING epoch"""
_RENEW = f"UPDATE crag.lease SET expires = clock_timestamp() + make_interval(secs => $5) WHERE {HELD} RETURNING 1"
_RETURN = f"DELETE FROM crag.lease WHERE {HELD}"
# In one round trip. The parts of a statement do not see each other's rows: the new query is none of the old ones.
_SAVE_QUERY = """WITH saved AS (
    INSERT INTO crag.query (store, id, text, created_at) SELECT store.id, $2, $3, $4 FROM crag.store WHERE store.id = $1
    ON CONFLICT (store, id) DO UPDATE SET text = excluded.text, created_at = excluded.created_at RETURNING 1),
    forgotten AS (DELETE FROM crag.query WHERE store = $1 AND id <> $2 AND seq <= (
        SELECT seq FROM crag.query WHERE store = $1 AND id <> $2 ORDER BY seq DESC OFFSET $5 - 1 LIMIT 1))
    SELECT * FROM saved"""


class PostgresDriver(Driver):
    """The statements of a store, which LightRAG's storages share."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    @override
    async def all(self, sql: str, *values: Any) -> list[Any]:
        return await self._store.all(sql, *values)

    @override
    async def one(self, sql: str, *values: Any) -> Any:
        return await self._store.one(sql, *values)

    @override
    async def many(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        await self._store.many(sql, rows)

    @override
    def transaction(self) -> AbstractAsyncContextManager[None]:
        return self._store.transaction()

    @override
    def snapshot(self) -> AbstractAsyncContextManager[None]:
        return self._store.snapshot()

    @override
    async def keep(self) -> None:
        """PostgreSQL has everything on the disk that was committed."""

    @override
    async def mark_untidy(self) -> None:
        """PostgreSQL's autovacuum gives the disk back."""

    @override
    async def show(self, changed: Changed) -> None:
        await list_changed(self._store, changed)

    @override
    async def take_lease(self, name: str, holder: str, seconds: float) -> int | None:
        try:
            async with self._store.note():
                row = await self.one(_SEEN, name)
                if row and row[0] != holder and row[1] and not is_gone(row[0]):
                    return None
                # Only what was seen is replaced: another may have taken the lease since.
                epoch: int | None = await self.value(_TAKE, name, holder, seconds, row[2] if row else None)
                return epoch
        except LedgerError as error:
            if isinstance(error.__cause__, asyncpg.ForeignKeyViolationError):
                raise StoreRemoved from error
            raise

    @override
    async def renew_lease(self, lease: Lease, seconds: float) -> bool:
        return await self._of_heir(_RENEW, lease, seconds) is not None

    @override
    async def return_lease(self, lease: Lease) -> None:
        await self._of_heir(_RETURN, lease)

    async def _of_heir(self, sql: str, lease: Lease, *values: float) -> Any:
        """Run a statement for a lease that this store had, whichever store has it now."""
        async with translating():
            number = self._store.heir or self._store.number
            return await self._store.database.value(sql, number, lease.name, lease.holder, lease.epoch, *values)

    @override
    def note_lost_lease(self) -> None:
        if (figures := self._store.database.figures) is not None:
            figures.lease_lost()

    @override
    async def embedding_model(self) -> str | None:
        model: str | None = await self.value("SELECT embedding_model FROM crag.store WHERE id = $1")
        return model

    @override
    async def vector_length(self) -> int | None:
        stored: int | None = await self.value("SELECT dimensions FROM crag.store WHERE id = $1")
        return stored

    @override
    async def bind(self, model: str, dimensions: int | None) -> None:
        if await self.value(_BIND, model, dimensions) and dimensions is not None:
            await self._store.make_vector_tables(dimensions)

    @override
    async def add_passages(self, version: int, parts: Sequence[CutPart]) -> None:
        passages = [
            (
                each.id,
                version,
                part.number,
                each.number,
                each.page,
                each.places,
                each.text["tokens"],
                each.text["content"],
            )
            for part in parts
            for each in part.passages
        ]
        await self.many(_ADD_PASSAGE, passages)
        await self._store.write_texts({each.id: each.text for part in parts for each in part.passages})

    @override
    async def erase_texts(self, ids: Sequence[str]) -> None:
        await self.execute("DELETE FROM crag.searched WHERE store = $1 AND id = ANY($2)", list(ids))
        await forget_answers(self._store, ids)
        await self._store.erase_texts(ids)

    @override
    async def copy_passages(self, old: Self, old_version: int, version: int) -> None:
        await self.execute(_COPY_PASSAGES, old._store.number, version, old_version)
        rows = await self.all(_TEXTS, version)
        names = ("content", "tokens", "chunk_order_index", "full_doc_id", "file_path")
        await self._store.write_texts(
            {key: dict(zip(names, (*row, quote(name, safe="")), strict=True)) for key, *row, name in rows}
        )
        await copy_answers(self._store, old._store, old_version)

    @override
    async def write_passage_vectors(self, rows: Mapping[str, Row], searched: Sequence[str], vectors: Vectors) -> None:
        await self.execute("DELETE FROM crag.searched WHERE store = $1 AND id = ANY($2)", list(rows))
        columns = zip(*(counted(text, self._store.number) for text in searched), strict=True)
        texts = [f"[{','.join(map(repr, vector.tolist()))}]" for vector in vectors]
        await self.execute(SEARCHED, list(rows), *map(list, columns), texts)
        await self._store.write_chunk_vectors(rows, vectors)

    @override
    async def change_graph(self, change: GraphChange, model: str) -> None:
        for changed in change.vectors.values():
            if changed.written:
                await self.bind(model, changed.vectors.shape[1])
        await self._store.write_graph(change)

    @override
    async def save_query(self, key: str, text: str, created_at: str, most: int) -> None:
        if await self.value(_SAVE_QUERY, key, text, created_at, most) is None:
            raise StoreRemoved


# ruff: noqa: S608 - statements are put together from names in this module, values are bound


_NOW = f"SELECT * FROM ({NOW.format(workspace='$2::text')}) AS told WHERE $1::bigint IS NOT NULL"
# Passages, their documents, the parts of these, and those of their names that several documents have. There are few,
# which the planner cannot know: OFFSET 0 keeps it from reading all of a table.
_WITH_DOCUMENTS = f"""SELECT * FROM (
WITH found AS MATERIALIZED ({PASSAGE} AND passage.id = ANY($2) AND passage.text IS NOT NULL),
chosen AS MATERIALIZED (SELECT DISTINCT version FROM found),
owner AS MATERIALIZED (SELECT each.* FROM chosen CROSS JOIN LATERAL (
    SELECT {FIELDS}, {BEGINNING_OF_TEXT} FROM {DOCUMENT}
    WHERE document.store = $1 AND state <> 'gone' AND document.version = chosen.version OFFSET 0) AS each),
piece AS MATERIALIZED (SELECT each.* FROM owner CROSS JOIN LATERAL (
    SELECT {PART_COLUMNS} FROM crag.part WHERE part.version = owner.version OFFSET 0) AS each),
shared AS MATERIALIZED (SELECT DISTINCT name FROM owner WHERE (SELECT count(*) FROM (
    SELECT FROM crag.document WHERE store = $1 AND state = 'current' AND md5(document.name) = md5(owner.name)
    AND document.name = owner.name LIMIT 2) AS namesakes) > 1)
SELECT {", ".join(f"(SELECT json_agg({each}) FROM {each}) AS {each}" for each in ("found", "owner", "piece", "shared"))}
) AS told"""


class PostgresLedger(Ledger):
    """All of a ledger. Its workspace is a row of a database that others share."""

    def __init__(self, store: PostgresStore, workspace: str, search_text: SearchText) -> None:
        super().__init__(PostgresDriver(store), workspace, search_text)
        self._store = store

    @override
    async def passages_by_id(self, ids: Sequence[str]) -> dict[str, tuple[DocumentRecord, Passage]]:
        tables = await self._store.one(_WITH_DOCUMENTS, list(dict.fromkeys(ids)))
        found, owners, parts, shared = ([list(row.values()) for row in orjson.loads(rows or "[]")] for rows in tables)
        parts.sort(key=lambda part: (part[0], part[1]))
        records = {row[0]: record for row, record in await self._joined(owners, parts, {name for (name,) in shared})}
        return {row[0]: (records[row[8]], passage_of(row)) for row in found if row[8] in records}

    @override
    async def catch_up(self) -> None:
        await self._store.catch_up()

    @override
    async def catch_up_graph(self) -> None:
        await self._store.catch_up_graph()

    @override
    async def status(self, model: str) -> KnowledgeStatus:
        # A snapshot holds a connection, and keeps PostgreSQL from tidying up. It must not wait for another database.
        outside = await self._store.sizes_of_graph() if self._store.is_outside("graph") else None
        async with self._store.snapshot():
            documents = "SELECT count(*) FROM crag.document WHERE store = $1 AND state = 'current'"
            entities, relations = outside or await self._store.sizes_of_graph()
            return KnowledgeStatus(
                workspace=self._workspace,
                embedding_model=model,
                documents=await self._store.value(documents),
                passages=await self._store.value("SELECT count(*) FROM crag.searched WHERE store = $1"),
                entities=entities,
                relations=relations,
                by_status=await self._statuses(),
                lightrag_workspace=self._store.key,
                waiting_changes=await self._store.value("SELECT count(*) FROM crag.journal WHERE store = $1"),
            )

    @override
    async def replace_by(self, other: Ledger) -> None:
        fresh, old = _on_postgres(other)._store, self._store
        async with translating(), old.database.transaction():
            await old.touch()
            await self._check_leases()
            await old.execute("UPDATE crag.lease SET store = $2 WHERE store = $1", fresh.number)
            await remove_here(old.database, old.workspace)
            await old.database.value("UPDATE crag.store SET workspace = $2 WHERE id = $1", fresh.number, old.workspace)
        old.heir = fresh.number
        await old.journal.drop_removed()

    @override
    async def state(self) -> str:
        return (await self.since("")).state

    @override
    async def generation(self) -> str:
        return (await self.since("")).generation

    @override
    async def since(self, state: str) -> Since:
        """See the base class. All of it is one row, so that it is read whatever the state was."""
        return since(await self._store.one(_NOW, self._store.workspace))

    @override
    async def opened_with(self) -> tuple[str | None, str]:
        return self._store.model, str(self._store.number)  # both came with the store's row

    @override
    async def flush(self) -> None:
        """PostgreSQL has everything on the disk that was committed."""

    @override
    async def damage(self, *, whole: bool = False) -> str:
        return ""

    @override
    def tidy(self) -> None:
        """PostgreSQL's autovacuum does that."""

    @override
    async def is_untidy(self) -> bool:
        return False

    @property
    @override
    def is_tidying(self) -> bool:
        return False

    @property
    @override
    def place(self) -> str:
        return str(self._store.database.address)

    @property
    @override
    def storages(self) -> Mapping[str, str]:
        return self._store.storages

    @property
    @override
    def read_only(self) -> bool:
        return False

    @override
    async def close(self) -> None:
        await self._store.settle()

    @override
    def release(self) -> None:
        self._store.release()

    @override
    def _driver_of(self, other: Ledger) -> Driver:
        return _on_postgres(other)._driver


def _on_postgres(ledger: Ledger) -> PostgresLedger:
    if not isinstance(ledger, PostgresLedger):
        raise TypeError("A ledger in PostgreSQL takes over another one there alone.")
    return ledger
