"""The ledger of a workspace in its SQLite file."""

from pathlib import Path
from typing import Self

from typing_extensions import override

from cragside.domain.knowledge import KnowledgeStatus
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.store.exchange import SearchText
from cragside.store.ledger import Ledger
from cragside.store.sqlite.database import Database
from cragside.store.sqlite.driver import SqliteDriver
from cragside.store.sqlite.schema import UNTIDY
from cragside.store.sqlite.upkeep import Checkup, Tidying


class SqliteLedger(Ledger):
    """All of a ledger, on the connection that LightRAG's storages share."""

    def __init__(
        self, database: Database, workspace: str, search_text: SearchText, *, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        driver = SqliteDriver(database, clock)
        super().__init__(driver, workspace, search_text)
        self._driver: SqliteDriver = driver
        self._database = database
        self._checkup = Checkup(database, clock)
        self._tidying = Tidying(database)

    @classmethod
    def open(
        cls,
        folder: Path,
        workspace: str,
        *,
        search_text: SearchText = str.lower,
        read_only: bool = False,
        clock: Clock = SYSTEM_CLOCK,
    ) -> Self:
        """Open the ledger of a folder, which is made unless it is only read.

        `search_text` gives the words of a text for full-text search. Raises `LedgerError` and `OSError`.
        """
        return cls(Database.acquire(folder, read_only=read_only), workspace, search_text, clock=clock)

    @override
    async def status(self, model: str) -> KnowledgeStatus:
        with self._database.snapshot():
            return KnowledgeStatus(
                workspace=self._workspace,
                embedding_model=model,
                documents=self._count("document WHERE state = 'current'"),
                passages=self._count("passage"),
                entities=self._count("node"),
                relations=self._count("edge"),
                by_status=await self._statuses(),
                size=_size_of(self._database.path),
            )

    def _count(self, rows: str) -> int:
        return int(self._database.one(f"SELECT count(*) FROM {rows}")[0])  # noqa: S608 (our own)

    @override
    async def replace_by(self, other: Ledger) -> None:
        self._driver.replace_by(self._driver_of(other), self._leases)

    @override
    async def state(self) -> str:
        return self._database.state()

    @override
    async def generation(self) -> str:
        return self._database.generation()

    @override
    async def flush(self) -> None:
        self._database.flush()

    @override
    async def damage(self, *, whole: bool = False) -> str:
        return await self._checkup.damage(whole=whole)

    @override
    async def catch_up(self) -> None:
        """No other database has a share of it."""

    @override
    async def catch_up_graph(self) -> None:
        """The graph is in the file too."""

    @override
    def tidy(self) -> None:
        self._tidying.ask()

    @override
    async def is_untidy(self) -> bool:
        return self._database.meta(UNTIDY) is not None

    @property
    @override
    def is_tidying(self) -> bool:
        return self._tidying.busy

    @property
    @override
    def place(self) -> str:
        return str(self._database.path)

    @property
    @override
    def read_only(self) -> bool:
        return self._database.read_only

    @override
    async def close(self) -> None:
        await self._tidying.close()
        await self._checkup.close()

    @override
    def release(self) -> None:
        self._database.release()

    @override
    def _driver_of(self, other: Ledger) -> SqliteDriver:
        if not isinstance(other, SqliteLedger):
            raise TypeError("A ledger on SQLite takes over another one on SQLite alone.")
        return other._driver


def _size_of(path: Path) -> int:
    """Measure a store's file in bytes, with those beside it that wait to be written into it."""
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())
