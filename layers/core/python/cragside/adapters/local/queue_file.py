"""The connection to the queue's file: transactions in threads, and failures as the port's errors."""

import asyncio
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from cragside.adapters.local.queue_schema import QueueFormatError, connect
from cragside.adapters.sqlite_files import Log, is_damage, unusable, without_paths
from cragside.domain.errors import ServiceUnavailable

Result = TypeVar("Result")

_log = logging.getLogger("cragside")


class QueueFile:
    """Runs SQL on the file at `path`, one transaction at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._using = threading.Lock()

    async def write(self, work: Callable[[sqlite3.Connection], Result], **default: Result) -> Result:
        """Run `work` as one transaction. Without a file return `default`; without a `default` create the file."""
        return await asyncio.to_thread(lambda: self._run(work, "BEGIN IMMEDIATE", **default))

    async def execute(self, sql: str, *values: Any) -> None:
        """Run one statement. Without a file, do nothing."""
        await self.write(lambda connection: connection.execute(sql, values), default=None)

    async def rows(self, sql: str, *values: Any) -> list[Any]:
        """Return the rows of a query; without a file, none."""
        return await asyncio.to_thread(
            self._run, lambda connection: connection.execute(sql, values).fetchall(), "", default=[]
        )

    def close(self) -> None:
        """Close the connection. The next use opens another one."""
        with self._using:
            if self._connection is not None:
                self._discard_broken_log()
                self._connection.close()
                self._connection = None

    def _discard_broken_log(self) -> None:
        with closing(Log(self._path)) as log:
            if log.discard_if_broken():
                _log.warning("Somebody changed %s-wal. The worker's sweep restores its tasks.", self._path.name)

    def _run(self, work: Callable[[sqlite3.Connection], Result], begin: str, **default: Result) -> Result:
        with self._using, self._failures_translated():
            self._discard_broken_log()
            if self._connection is None:
                if default and not os.path.lexists(self._path):
                    return default["default"]
                self._connection = connect(self._path)
            with self._connection as connection:  # commits, or rolls back after an exception
                if begin:
                    connection.execute(begin)
                return work(connection)

    @contextmanager
    def _failures_translated(self) -> Iterator[None]:
        try:
            yield
        except QueueFormatError as error:
            raise self._unavailable(f"cannot be used: {error}.") from error
        except sqlite3.DatabaseError as error:
            reason = f"{unusable(error)}."
            if is_damage(error):
                remedy = "Move it away: the next worker rebuilds it from the documents."
                reason = f"is damaged ({without_paths(error)}). {remedy}"
            raise self._unavailable(reason) from error
        except OSError as error:
            raise self._unavailable(f"cannot be used: {error.strerror}. Check RAG_HOME.") from error

    def _unavailable(self, reason: str) -> ServiceUnavailable:
        return ServiceUnavailable("queue", f"{self._path.name} in RAG_HOME {reason}").at(self._path)
