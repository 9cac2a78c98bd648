"""The ledger of a workspace in PostgreSQL."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

from collections.abc import Mapping, Sequence

import orjson
from typing_extensions import override

from cragside.domain.indexing import DocumentRecord, Passage
from cragside.domain.knowledge import KnowledgeStatus
from cragside.store.ledger.documents import DOCUMENT, FIELDS, PART_COLUMNS
from cragside.store.ledger.driver import Driver
from cragside.store.ledger.exchange import SearchText
from cragside.store.ledger.ledger import Ledger, Since
from cragside.store.ledger.passages import BEGINNING_OF_TEXT, PASSAGE, passage_of
from cragside.store.ledger.postgres.driver import PostgresDriver
from cragside.store.ledger.postgres.failing import translating
from cragside.store.ledger.postgres.store import NOW, PostgresStore, since
from cragside.store.ledger.postgres.stores import remove_here

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
