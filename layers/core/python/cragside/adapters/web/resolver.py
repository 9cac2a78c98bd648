"""Resolves host names."""

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from typing_extensions import override


class Resolver(Protocol):
    """Resolves names to addresses."""

    async def addresses(self, name: str) -> Sequence[str]:
        """All IPv4 and IPv6 addresses of a name. Raises `OSError` if there are none."""

    async def close(self) -> None:
        """Release resources."""


class SystemResolver(Resolver):
    """Asks the operating system, in its own threads: a name that never resolves blocks nothing else."""

    def __init__(self, *, parallel: int = 5) -> None:
        self._parallel = parallel
        self._threads: ThreadPoolExecutor | None = None

    @override
    async def addresses(self, name: str) -> Sequence[str]:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._parallel, thread_name_prefix="cragside-names")
        found = await asyncio.get_running_loop().run_in_executor(self._threads, _lookup, name)
        return list(dict.fromkeys(found))

    @override
    async def close(self) -> None:
        """End the threads. A thread that waits for an answer ends when it comes."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None


def _lookup(name: str) -> list[str]:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise OSError("is not a valid name") from error
    return [str(entry[4][0]) for entry in found]
