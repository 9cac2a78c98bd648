"""Run a ledger's statements in PostgreSQL, as they are."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self
from urllib.parse import quote

import asyncpg
import orjson
from typing_extensions import override

from cragside.databases.lease_holders import is_gone
from cragside.ports.embedder import Vectors
from cragside.store.chunking import CutPart
from cragside.store.documents import DOCUMENT, FIELDS, PART_COLUMNS
from cragside.store.driver import HELD, Changed, Driver, GraphChange, Row, Since, Sizes
from cragside.store.errors import Lease, LedgerError, StoreRemoved
from cragside.store.passages import BEGINNING_OF_TEXT, FOUND
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
_NOW = f"SELECT * FROM ({NOW.format(workspace='$2::text')}) AS told WHERE $1::bigint IS NOT NULL"
# Passages, their documents, the parts of these, and those of their names that several documents have. There are few,
# which the planner cannot know: OFFSET 0 keeps it from reading all of a table.
_WITH_DOCUMENTS = f"""SELECT * FROM (
WITH found AS MATERIALIZED ({FOUND} AND passage.text IS NOT NULL),
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
_SEARCHABLE = "SELECT count(*) FROM crag.searched WHERE store = $1"
_WAITING = "SELECT count(*) FROM crag.journal WHERE store = $1"


class PostgresDriver(PostgresStore, Driver):
    """The driver of a workspace that is a row of a database, which others share."""

    @property
    @override
    def place(self) -> str:
        return str(self.database.address)

    @override
    async def keep(self) -> None:
        """PostgreSQL has everything on the disk that was committed."""

    @override
    async def state(self) -> str:
        return (await self.since("")).state

    @override
    async def generation(self) -> str:
        return (await self.since("")).generation

    @override
    async def since(self, state: str) -> Since:
        """See the base class. All of it is one row, so that it is read whatever the state was."""
        return since(await self.one(_NOW, self.workspace))

    @override
    async def opened_with(self) -> tuple[str | None, str]:
        return self.model, str(self.number)  # both came with the store's row

    @override
    @asynccontextmanager
    async def sizes(self) -> AsyncIterator[Sizes]:
        # A snapshot holds a connection, and keeps PostgreSQL from tidying up. It must not wait for another database.
        outside = await self.sizes_of_graph() if self.is_outside("graph") else None
        async with self.snapshot():
            passages = await self.value(_SEARCHABLE)
            entities, relations = outside or await self.sizes_of_graph()
            yield Sizes(passages, entities, relations, self.key, waiting_changes=await self.value(_WAITING))

    @override
    async def replace_by(self, other: Self, leases: Sequence[Lease]) -> None:
        async with translating(), self.database.transaction():
            await self.touch()
            await self.check_leases(leases)
            await self.execute("UPDATE crag.lease SET store = $2 WHERE store = $1", other.number)
            await remove_here(self.database, self.workspace)
            await self.database.value(
                "UPDATE crag.store SET workspace = $2 WHERE id = $1", other.number, self.workspace
            )
        self.successor = other.number
        await self.journal.drop_removed()

    @override
    async def flush(self) -> None:
        """PostgreSQL has everything on the disk that was committed."""

    @override
    def tidy(self) -> None:
        """PostgreSQL's autovacuum does that."""

    @override
    async def mark_untidy(self) -> None:
        """PostgreSQL's autovacuum gives the disk back."""

    @override
    async def show(self, changed: Changed) -> None:
        await list_changed(self, changed)

    @override
    async def take_lease(self, name: str, holder: str, seconds: float) -> Lease | None:
        try:
            async with self.note():
                row = await self.one(_SEEN, name)
                if row and row[0] != holder and row[1] and not is_gone(row[0]):
                    return None
                # Only what was seen is replaced: another may have taken the lease since.
                epoch = await self.value(_TAKE, name, holder, seconds, row[2] if row else None)
                return None if epoch is None else Lease(name, holder, epoch)
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
            number = self.successor or self.number
            return await self.database.value(sql, number, lease.name, lease.holder, lease.epoch, *values)

    @override
    def note_lost_lease(self) -> None:
        if (figures := self.database.figures) is not None:
            figures.lease_lost()

    @override
    async def embedding_model(self) -> str | None:
        model: str | None = await self.value("SELECT embedding_model FROM crag.store WHERE id = $1")
        return model

    @override
    async def stored_dimensions(self) -> int | None:
        stored: int | None = await self.value("SELECT dimensions FROM crag.store WHERE id = $1")
        return stored

    @override
    async def bind(self, model: str, dimensions: int | None) -> None:
        if await self.value(_BIND, model, dimensions) and dimensions is not None:
            await self.make_vector_tables(dimensions)

    @override
    async def passages_with_documents(
        self, ids: Sequence[str]
    ) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any], Collection[str]]:
        tables = await self.one(_WITH_DOCUMENTS, ids)
        found, owners, parts, shared = ([list(row.values()) for row in orjson.loads(rows or "[]")] for rows in tables)
        parts.sort(key=lambda part: (part[0], part[1]))
        return found, owners, parts, {name for (name,) in shared}

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
        await self.write_texts({each.id: each.text for part in parts for each in part.passages})

    @override
    async def erase_texts(self, ids: Collection[str]) -> None:
        await self.execute("DELETE FROM crag.searched WHERE store = $1 AND id = ANY($2)", list(ids))
        await forget_answers(self, ids)
        await super().erase_texts(ids)

    @override
    async def copy_passages(self, old: Self, old_version: int, version: int) -> None:
        await self.execute(_COPY_PASSAGES, old.number, version, old_version)
        rows = await self.all(_TEXTS, version)
        names = ("content", "tokens", "chunk_order_index", "full_doc_id", "file_path")
        await self.write_texts(
            {key: dict(zip(names, (*row, quote(name, safe="")), strict=True)) for key, *row, name in rows}
        )
        await copy_answers(self, old, old_version)

    @override
    async def write_passage_vectors(self, rows: Mapping[str, Row], searched: Sequence[str], vectors: Vectors) -> None:
        await self.execute("DELETE FROM crag.searched WHERE store = $1 AND id = ANY($2)", list(rows))
        columns = zip(*(counted(text, self.number) for text in searched), strict=True)
        texts = [f"[{','.join(map(repr, vector.tolist()))}]" for vector in vectors]
        await self.execute(SEARCHED, list(rows), *map(list, columns), texts)
        await self.write_chunk_vectors(rows, vectors)

    @override
    async def change_graph(self, change: GraphChange, model: str) -> None:
        for changed in change.vectors.values():
            if changed.written:
                await self.bind(model, changed.vectors.shape[1])
        await self.write_graph(change)

    @override
    async def save_query(self, key: str, text: str, created_at: str, most: int) -> None:
        if await self.value(_SAVE_QUERY, key, text, created_at, most) is None:
            raise StoreRemoved
