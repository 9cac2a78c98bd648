"""Shares the connections to a server among requests, and keeps them from waiting for one that does not answer."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import cast
from weakref import WeakValueDictionary

from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.telemetry import DatabaseFigures, Server

# A server that is silent for longer is asked for a sign of life, and has so long to give it.
SILENCE_SECONDS = 1.0
SIGN_SECONDS = 2.0
# While the server does not answer, one caller in so many seconds tries it. The others fail at once.
PAUSE_SECONDS = 5.0
# How long a caller waits while all connections are in use.
WAIT_SECONDS = 10.0


class ServerFailure(Exception):
    """Tells why a server failed. `unusable` ends the sentence "The store …". Neither text quotes the request."""

    def __init__(self, reason: str, unusable: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.unusable = unusable


class Gate:
    """Lets callers use a server, at most `most` at once, and keeps them from waiting for one that does not answer.

    That somebody asks much, or goes away before the answer, is no outage: only the server's own silence is.
    """

    def __init__(
        self,
        name: str,
        failure: type[ServerFailure],
        sign_of_life: Callable[[], Awaitable[object]],
        *,
        most: int,
        clock: Clock = SYSTEM_CLOCK,
        figures: DatabaseFigures | None = None,
    ) -> None:
        """`sign_of_life` asks the server for something small on a connection of its own. It raises if that fails.

        `clock` tells the seconds by which an outage is timed.
        """
        self._name = name
        self._failure = failure
        self._sign_of_life = sign_of_life
        self._most = most
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._free = asyncio.Semaphore(most)
        self._waiting: set[asyncio.Timeout] = set()
        self._asking: asyncio.Task[None] | None = None
        self._outage: ServerFailure | None = None
        self._next_try = 0.0
        self._figures = figures
        self._counts = Counter[str]()
        self._count()

    @asynccontextmanager
    async def passed(self) -> AsyncIterator[None]:
        """The server may be used in this block. Raises the failure that the gate was made with."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._free = loop, asyncio.Semaphore(self._most)
            self._waiting, self._asking = set(), None
        async with self._turn(self._free):
            self._check(self._clock.monotonic())
            try:
                async with asyncio.timeout(None) as limit:
                    suspicion = loop.call_later(SILENCE_SECONDS, self._suspect, limit)
                    try:
                        yield
                    finally:
                        suspicion.cancel()
                        self._waiting.discard(limit)
            except TimeoutError:
                if limit.expired():
                    raise self.silence() from None
                raise
            self.answered()

    def answered(self) -> None:
        """Note that the server has answered, even with a failure. Nobody is kept from it any more."""
        self._outage = None

    def silence(self) -> ServerFailure:
        """Make the failure of a server that does not answer."""
        return self._failure(f"{self._name} does not answer", f"is out of reach: {self._name} does not answer")

    def close_for_a_while(self, failure: ServerFailure) -> None:
        """Nobody else needs to try for the next seconds."""
        self._outage, self._next_try = failure, self._clock.monotonic() + PAUSE_SECONDS

    async def stop(self) -> None:
        """Ask for no more signs of life."""
        asking, self._asking = self._asking, None
        if asking is not None and self._loop is asyncio.get_running_loop():
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking

    @asynccontextmanager
    async def _turn(self, free: asyncio.Semaphore) -> AsyncIterator[None]:
        """One of the connections may be used in this block. The driver's own queue would not look for an outage."""
        self._count(waiting=1)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await free.acquire()
        except TimeoutError:
            busy = f"all {self._most} connections to {self._name} are in use"
            raise self._failure(
                busy, f"is busy: {busy}. Try again, or raise RAG_{self._name.upper()}_CONNECTIONS"
            ) from None
        finally:
            self._count(waiting=-1)
        self._count(in_use=1)
        try:
            yield
        finally:
            free.release()
            self._count(in_use=-1)

    def _count(self, **changes: int) -> None:
        self._counts.update(changes)
        if self._figures is not None:
            server = cast(Server, self._name.lower())
            self._figures.connections(
                server, most=self._most, in_use=self._counts["in_use"], waiting=self._counts["waiting"]
            )

    def _check(self, now: float) -> None:
        if self._outage is not None:
            if now < self._next_try:
                raise self._failure(self._outage.reason, self._outage.unusable)
            self._next_try = now + PAUSE_SECONDS

    def _suspect(self, limit: asyncio.Timeout) -> None:
        """Note that a caller has waited for a second.

        One task asks the server for a sign of life on behalf of all, even if this caller gives up.
        """
        self._waiting.add(limit)
        if self._asking is None or self._asking.done():
            self._asking = asyncio.get_running_loop().create_task(self._ask())

    async def _ask(self) -> None:
        while self._waiting:
            try:
                async with asyncio.timeout(SIGN_SECONDS):
                    await self._sign_of_life()
            except Exception:  # whatever its driver raises
                self.close_for_a_while(self.silence())
                waiting, self._waiting = self._waiting, set()
                for limit in waiting:
                    limit.reschedule(asyncio.get_running_loop().time())
                return
            self.answered()
            await self._clock.sleep(SILENCE_SECONDS)


class Shares:
    """Lets one user have half of `most` connections, so that what is slow for one keeps no other one waiting."""

    def __init__(self, most: int) -> None:
        self.each = (most + 1) // 2
        self._loop: asyncio.AbstractEventLoop | None = None
        self._free_of: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, user: str, *, wait_seconds: float) -> AsyncIterator[None]:
        """The user may use one connection in this block. Raises `TimeoutError` when all of the share stay in use."""
        if self._loop is not (loop := asyncio.get_running_loop()):
            self._loop, self._free_of = loop, WeakValueDictionary()
        free = self._free_of.setdefault(user, asyncio.Semaphore(self.each))
        async with asyncio.timeout(wait_seconds):
            await free.acquire()
        try:
            yield
        finally:
            free.release()


CLOSE_SECONDS = 3.0
_log = logging.getLogger("cragside")


async def close_quietly(server: str, closing: Awaitable[object], *, seconds: float = CLOSE_SECONDS) -> None:
    """Wait for the end of connections to a server, for so many seconds at most. The log tells of one that does not end.

    A relay may keep a connection open, and a server may be gone.
    """
    try:
        async with asyncio.timeout(seconds):
            await closing
    except Exception as error:  # whatever its driver raises
        _log.info("Connections to %s did not end when they were closed (%s).", server, type(error).__name__)
