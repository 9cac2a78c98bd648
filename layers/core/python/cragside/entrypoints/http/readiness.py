"""Asks components whether they can be used. Their answers hold for a while, so that questions are no load on hosts."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Generic, TypeVar

from cragside.bootstrap import Container
from cragside.composition.outside import outside_checks
from cragside.domain.errors import CragsideError
from cragside.domain.faults import Fault
from cragside.entrypoints.http.errors import for_client
from cragside.entrypoints.model_checks import host_component
from cragside.ports.clock import Clock

# Seconds to wait for each component.
_PATIENCE_SECONDS = 2.0
# Seconds for which an answer holds.
_HOLDS_SECONDS = 1.0
_log = logging.getLogger("cragside")

T = TypeVar("T")


class SharedLook(Generic[T]):
    """Runs `look` once for all who ask meanwhile, and for those who ask within `holds` seconds of its start."""

    def __init__(self, look: Callable[[], Coroutine[Any, Any, T]], clock: Clock, holds: float = _HOLDS_SECONDS) -> None:
        self._look = look
        self._clock = clock
        self._holds = holds
        self._begun = 0.0
        self._looking: asyncio.Task[T] | None = None

    async def result(self) -> T:
        """Return what the latest look found."""
        now = self._clock.monotonic()
        if self._looking is None or (self._looking.done() and now - self._begun >= self._holds):
            self._begun = now
            self._looking = asyncio.create_task(self._look())
        return await asyncio.shield(self._looking)


async def answer_of(
    component: str, ask: Callable[[], Awaitable[T]], *, patience: float = _PATIENCE_SECONDS, places: bool = False
) -> tuple[T | None, str]:
    """Return a component's answer, and why it cannot be used; "" if it can. Only the log may see `places`."""
    try:
        async with asyncio.timeout(patience):
            return await ask(), ""
    except TimeoutError:
        return None, str(Fault.late(component, patience))
    except CragsideError as error:
        fault = Fault.of(component, error, error.message if places else for_client(error).message)
        return None, f"{fault} [{error.where}]" if places and error.where else str(fault)
    except Exception:
        _log.exception("The %s failed", component)
        return None, str(Fault.unexpected(component))


async def reasons(
    checks: Mapping[str, Callable[[], Awaitable[object]]], *, patience: float = _PATIENCE_SECONDS, places: bool = False
) -> dict[str, str]:
    """Ask all components at once. Return why each cannot be used; "" if it can."""
    answers = await asyncio.gather(
        *(answer_of(name, ask, patience=patience, places=places) for name, ask in checks.items())
    )
    return {name: reason for name, (_, reason) in zip(checks, answers, strict=True)}


async def check_store(container: Container, workspace: str) -> None:
    """Raise `ServiceUnavailable` if a workspace's store cannot be read, or its disk is full."""
    if container.spare_room is not None:
        container.spare_room.check()
    await container.workspaces.check(workspace)
    await (await container.workspaces.open(workspace)).documents.documents(limit=1)


class Readiness:
    """Asks the store, the queue, and the hosts and databases that are configured."""

    def __init__(self, container: Container, *, patience: float = _PATIENCE_SECONDS) -> None:
        self._container = container
        self._patience = patience
        self._shared = SharedLook(self.look, container.clock)
        self._reported: list[str] = []

    async def missing(self) -> list[str]:
        """Name the components that do not answer. The log has the reasons, once for each change."""
        return await self._shared.result()

    async def look(self) -> list[str]:
        """Ask all of them now."""
        found = await reasons(self._checks(), patience=self._patience, places=True)
        missing = {name: reason for name, reason in found.items() if reason}
        if list(missing) != self._reported:
            self._reported = list(missing)
            if missing:
                _log.warning("Not ready: %s", " ".join(f"{name}: {reason}" for name, reason in missing.items()))
            else:
                _log.info("Ready again.")
        return list(missing)

    def _checks(self) -> Mapping[str, Callable[[], Awaitable[object]]]:
        container = self._container
        checks: dict[str, Callable[[], Awaitable[object]]] = {
            "store": partial(check_store, container, container.settings.workspace)
        }
        if container.keeps_worker() or container.settings.queue_url is not None:
            checks["queue"] = container.queue.stats
        if (host := container.host) is not None:
            checks[host_component(container.settings)] = host.version
        if (search := container.search) is not None:
            checks["search"] = search.check
        return {**checks, **outside_checks(container)}
