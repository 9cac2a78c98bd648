"""The sessions of a PostgreSQL and of the pgbouncer before it, watched while a benchmark puts load on them."""

import asyncio
import csv
import io
import subprocess
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from tests.services.postgres import programs

IN_TRANSACTION = "idle in transaction"
_STATES = """SELECT state, count(*) AS number,
    max(extract(epoch FROM clock_timestamp() - state_change))::float AS seconds
    FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'
    AND pid <> pg_backend_pid() GROUP BY state"""
_BETWEEN_LOOKS = 0.02


@dataclass
class Sessions:
    """Watch, on a connection past the pooler, the sessions from entering the block to leaving it."""

    uri: str
    looks: int = 0
    peak: int = 0
    # The longest that one was seen idle in a transaction. A moment between two statements is as it should be.
    in_transaction_seconds: float = 0.0
    # The states after the load.
    left: Counter[str] = field(default_factory=Counter)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._watch()))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    async def _watch(self) -> None:
        connection = await asyncpg.connect(self.uri)
        try:
            while not self._over.is_set():
                self.saw(await connection.fetch(_STATES))
                await asyncio.sleep(_BETWEEN_LOOKS)
            self.saw(await connection.fetch(_STATES))
        finally:
            await connection.close()

    def saw(self, rows: list[asyncpg.Record]) -> None:
        """Take a look's rows into account: state, number, seconds."""
        self.looks += 1
        self.left = Counter({row["state"] or "none": row["number"] for row in rows})
        self.peak = max(self.peak, self.left.total())
        waits = [row["seconds"] for row in rows if (row["state"] or "").startswith(IN_TRANSACTION)]
        self.in_transaction_seconds = max([self.in_transaction_seconds, *waits])


def shown(pooler: str, what: str) -> list[dict[str, str]]:
    """Ask pgbouncer's `SHOW` for each database other than its own. `pooler` is an address of it."""
    console = urlunsplit(urlsplit(pooler)._replace(path="/pgbouncer"))
    # Its console speaks only the simple protocol, which no driver of ours does for rows.
    command = [str(programs() / "psql"), "--no-psqlrc", "--csv", "--command", f"SHOW {what}", console]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [row for row in csv.DictReader(io.StringIO(answer)) if row["database"] != "pgbouncer"]
