"""The journal of changes that go to databases outside of PostgreSQL."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import Context
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

import orjson

from cragside.databases.gate import ServerFailure
from cragside.databases.postgres.database import PostgresDatabase
from cragside.store.errors import LedgerError
from cragside.store.postgres.schema import translating

logger = logging.getLogger("cragside")

_NOTE = """WITH next AS (INSERT INTO crag.outside VALUES ($1, $2, 1)
        ON CONFLICT (store, role) DO UPDATE SET seq = outside.seq + 1 RETURNING seq)
    INSERT INTO crag.journal (store, role, seq, change) SELECT $1, $2, seq, $3 FROM next"""
# The first change, and of the next ones as many as have so many bytes in all.
_WAITING = """SELECT seq, id, change FROM (
        SELECT seq, id, change, sum(octet_length(change)) OVER (ORDER BY seq) AS bytes, row_number() OVER (ORDER BY seq)
        FROM (SELECT * FROM crag.journal WHERE store = $1 AND role = $2 ORDER BY seq LIMIT 100) AS next) AS waiting
    WHERE bytes <= $3 OR row_number = 1 ORDER BY seq"""
BYTES_AT_ONCE = 4 * 2**20
_WAITS = "SELECT 1 FROM crag.journal WHERE store = $1 AND role = $2 AND seq = $3 AND id = $4"
_DONE = "DELETE FROM crag.journal WHERE store = $1 AND role = $2 AND seq = $3 AND id = $4"
_LOST = "UPDATE crag.outside SET lost = true WHERE store = $1 AND role = $2"
_SHARES = """SELECT role, seq, lost, (SELECT min(seq) FROM crag.journal WHERE store = $1 AND role = outside.role)
    FROM crag.outside WHERE store = $1 ORDER BY role"""
_BEHIND = """SELECT DISTINCT store.id, store.key FROM crag.journal JOIN crag.store ON store.id = journal.store
    WHERE role = ANY($1)"""
_DROPPED = "SELECT key, role FROM crag.dropped WHERE role = ANY($1)"
# How long a process that ends waits for what it is writing to other databases. Others go on with it.
CLOSE_SECONDS = 5.0

D = TypeVar("D", bound="Connections")

# No writer is stopped for longer than a week: what keeps late writers out may go then.
FORGET_SECONDS = 7 * 24 * 3600


class ShareLost(LedgerError):
    """Another database has lost changes of a store, or has some that PostgreSQL has lost."""

    def __init__(self, share: str) -> None:
        lost = f"{share} was restored from a backup or emptied"
        super().__init__(lost, f"does not agree with all of its databases: {lost}. Run cragside repair")


class Fence(NamedTuple):
    """The latest change of a store that another database has: its number and its id. Without arguments, none."""

    seq: int = 0
    change: str = ""

    def comes_before(self, this: "Fence") -> bool:
        """Return True if `this` is the next change."""
        return self.seq == this.seq - 1


# The fence of a removed store: any change of a stopped writer comes before it. Some databases compare floats.
CLOSED = Fence(2**53)


class Connections(Protocol):
    """Connections to a server."""

    @property
    def address(self) -> object:
        """Return where it is. As text, this shows neither user nor password."""

    async def close(self) -> None:
        """Close them."""


class Target(ABC, Generic[D]):
    """A database outside of PostgreSQL that holds a share of each store. All methods may raise `LedgerError`.

    Changes are written in their order and once each, though several processes write, and any of them may stop at any
    point and go on later. A `Fence` that is kept with the share makes sure of that: a change is written, and the fence
    set to it, only while the fence is the one before. Where a database has transactions, both are one transaction.
    `VectorTarget` does without.
    """

    # Completes the sentence "... was restored from a backup".
    share: ClassVar[str]

    def __init__(self, database: D) -> None:
        self._database = database

    @property
    def address(self) -> str:
        """Return the address of the database, without user and password."""
        return str(self._database.address)

    async def write(self, key: str, seq: int, change_id: UUID, change: dict[str, Any]) -> bool:
        """Write the `seq`-th change of the store with this key, whole.

        One that is written already stays as it is. Returns False, and writes nothing, if a later one or another one of
        this number is there, or if the one before is not.
        """
        async with translating_failures():
            return await self._write(key, Fence(seq, str(change_id)), change)

    async def applied(self, key: str) -> int:
        """Return the number of the latest change of a store that was written, 0 without any."""
        async with translating_failures():
            return await self._applied(key)

    async def drop(self, key: str) -> None:
        """Remove all of a store. No later change of it is written, within `FORGET_SECONDS` at least."""
        async with translating_failures():
            await self._drop(key)

    async def close(self) -> None:
        """Close the connections."""
        await self._database.close()

    @abstractmethod
    async def _write(self, key: str, this: Fence, change: dict[str, Any]) -> bool:
        """See `write`."""

    @abstractmethod
    async def _applied(self, key: str) -> int:
        """See `applied`."""

    @abstractmethod
    async def _drop(self, key: str) -> None:
        """See `drop`. The fence is closed first: a writer that comes meanwhile is kept out."""


@asynccontextmanager
async def translating_failures() -> AsyncIterator[None]:
    """Raise failures of another database's server as the ledger's own exception."""
    try:
        yield
    except ServerFailure as error:
        raise LedgerError(error.reason, error.unusable) from error


class Journal:
    """Notes changes in the ledger's transaction, and has them written outside in their order.

    Any process may write what another one has noted. `targets` are the databases by the roles of LightRAG's storages.
    """

    def __init__(self, database: PostgresDatabase, targets: Mapping[str, Target[Any]]) -> None:
        self._database = database
        self.targets = targets
        # How many changes this process has noted.
        self.noted = 0
        self._drains: dict[tuple[int, str], asyncio.Task[None]] = {}

    def target(self, role: str) -> Any:
        """Return the database of a role: a `Target`. Raises `LedgerError` if none is configured."""
        if role not in self.targets:
            setting = f"RAG_{role.upper()}_STORAGE"
            raise LedgerError(
                "the address of another database is not set",
                f"is partly in another database, whose address is not set: see {setting}",
            )
        return self.targets[role]

    async def note(self, number: int, role: str, change: dict[str, Any]) -> None:
        """Note a change of a store in the transaction that is under way."""
        self.noted += 1
        async with translating():
            await self._database.value(_NOTE, number, role, orjson.dumps(change).decode())

    async def drain(self, number: int, key: str) -> None:
        """Have all noted changes of a store written. Raises `LedgerError`, and `ShareLost` until it is repaired.

        The writing goes on when a caller stops waiting.
        """
        await self._drained(number, key)

    async def check(self, number: int, key: str, *roles: str) -> None:
        """Have all noted changes of a store written, and compare what the other databases have with the journal.

        With `roles`, only theirs. Raises `LedgerError` and `ShareLost`.
        """
        for role, seq, first in await self._drained(number, key, *roles):
            applied = await self.target(role).applied(key)
            agrees = (seq if first is None else first - 1) <= applied <= seq
            # Others may have written meanwhile.
            if not agrees and (role, seq, first) in await self._drained(number, key, role):
                await self._lose(number, role)

    async def sweep(self) -> None:
        """Finish what interrupted processes left. What fails is left to the next sweep."""
        if not self.targets:
            return
        async with translating():
            stores = await self._database.all(_BEHIND, list(self.targets))
        for number, key in stores:
            try:
                await self.drain(number, key)
            except LedgerError as error:
                logger.warning("A change waits to be written to another database: %s", error.reason)
        await self.drop_removed()

    async def drop_removed(self) -> None:
        """Remove the shares of stores that are gone from PostgreSQL. What fails is left to `sweep`."""
        if not self.targets:
            return
        async with translating():
            dropped = await self._database.all(_DROPPED, list(self.targets))
        for key, role in dropped:
            try:
                await self.targets[role].drop(key)
            except LedgerError as error:
                logger.warning("What another database has of a removed workspace is still there: %s", error.reason)
                continue
            async with translating():
                await self._database.value("DELETE FROM crag.dropped WHERE key = $1 AND role = $2", key, role)

    async def close(self) -> None:
        """Finish, and close the connections to the other databases."""
        await self.finish()
        for target in self.targets.values():
            await target.close()

    async def finish(self) -> None:
        """End the writing to other databases. It waits 5 seconds for writes under way, then cancels them."""
        if drains := list(self._drains.values()):
            _, unfinished = await asyncio.wait(drains, timeout=CLOSE_SECONDS)
            for drain in unfinished:
                drain.cancel()
            await asyncio.gather(*drains, return_exceptions=True)

    async def _drained(self, number: int, key: str, *roles: str) -> list[tuple[str, int, int | None]]:
        """The roles, the numbers of their latest changes, and of the first one that was waiting."""
        async with translating():
            shares = [row for row in await self._database.all(_SHARES, number) if not roles or row[0] in roles]
        # A database that is out of reach, or that lost its share, holds no other one up.
        drains = [self._drain(number, key, role) for role, _, lost, first in shares if first is not None and not lost]
        ended = await asyncio.gather(*drains, return_exceptions=True)
        for failed in (*(ShareLost(self.target(role).share) for role, _, lost, _ in shares if lost), *ended):
            if failed is not None:
                raise failed
        return [(role, seq, first) for role, seq, _, first in shares]

    async def _drain(self, number: int, key: str, role: str) -> None:
        """Have the changes of a role written, by one task of this process at a time."""
        this = number, role
        if running := self._drains.get(this):
            await asyncio.wait([running])  # it may have looked before ours was noted
        if this not in self._drains:
            # It outlives whoever waits for it, and has no part in a transaction of his.
            writing = self._write_all(number, key, role)
            task = self._drains[this] = asyncio.get_running_loop().create_task(writing, context=Context())
            task.add_done_callback(lambda done: self._ended(this, done))
        await asyncio.shield(self._drains[this])

    def _ended(self, this: tuple[int, str], drain: "asyncio.Task[None]") -> None:
        if self._drains.get(this) is drain:
            del self._drains[this]
        if not drain.cancelled() and (error := drain.exception()):
            logger.debug("A change waits to be written to another database: %s", error)

    async def _write_all(self, number: int, key: str, role: str) -> None:
        # One at first: if the database is out of reach, the others need not be read.
        most = 0
        while True:
            async with translating():
                waiting = await self._database.all(_WAITING, number, role, most)
            if not waiting:
                return
            for seq, change_id, change in waiting:
                await self._write(number, key, role, seq, change_id, orjson.loads(change))
            most = BYTES_AT_ONCE

    async def _write(self, number: int, key: str, role: str, seq: int, change_id: UUID, change: dict[str, Any]) -> None:
        this = number, role, seq, change_id
        if not await self.target(role).write(key, seq, change_id, change):
            # Another process that wrote it, and later ones, has taken it out of the journal before.
            async with translating():
                waits = await self._database.value(_WAITS, *this)
            if waits:
                await self._lose(number, role)
            return
        async with translating():
            await self._database.value(_DONE, *this)

    async def _lose(self, number: int, role: str) -> None:
        async with translating():
            await self._database.value(_LOST, number, role)
        raise ShareLost(self.target(role).share)
