"""The ledger of a workspace in its SQLite file."""

from pathlib import Path
from typing import Self

from typing_extensions import override

from cragside.adapters.lightrag.ledger.interface import Ledger
from cragside.adapters.lightrag.ledger.sqlite.checkup import Checkup
from cragside.adapters.lightrag.ledger.sqlite.copying import Copying, on_sqlite
from cragside.adapters.lightrag.ledger.sqlite.database import Database
from cragside.adapters.lightrag.ledger.sqlite.schema import UNTIDY
from cragside.adapters.lightrag.ledger.sqlite.tidying import Tidying
from cragside.adapters.lightrag.ledger.sqlite.vectors import SearchText
from cragside.ports.clock import SYSTEM_CLOCK, Clock


class SqliteLedger(Copying):
    """All of a ledger, on the connection that LightRAG's storages share."""

    def __init__(
        self, database: Database, workspace: str, search_text: SearchText, *, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        super().__init__(database, workspace, search_text)
        self._clock = clock
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
        """The ledger of a folder, which is made unless it is only read. `search_text` gives what full-text search sees.

        Raises `LedgerError` and `OSError`.
        """
        return cls(Database.acquire(folder, read_only=read_only), workspace, search_text, clock=clock)

    @override
    async def replace_by(self, other: Ledger) -> None:
        self._database.replace_by(on_sqlite(other)._database, self._check_leases)

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
