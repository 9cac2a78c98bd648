"""Whether a server can do all its work now."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from cragside.bootstrap import Container
from cragside.composition.store_files import outside_checks
from cragside.domain.errors import CragsideError
from cragside.domain.faults import Fault
from cragside.entrypoints.model_checks import host_component

# Seconds to wait for each component.
_PATIENCE_SECONDS = 2.0
# Seconds for which an answer holds. Everybody may ask, and their questions must not become load on other hosts.
_HOLDS_SECONDS = 1.0
_log = logging.getLogger("cragside")


async def check_store(container: Container, workspace: str) -> None:
    """Raise `ServiceUnavailable` if a workspace's store cannot be read, or its disk is full."""
    if container.spare_room is not None:
        container.spare_room.check()
    await container.workspaces.check(workspace)
    await (await container.workspaces.open(workspace)).documents.documents(limit=1)


class Readiness:
    """Asks the store, the queue, and the hosts and databases that are configured.

    Those who ask at the same time share one look.
    """

    def __init__(self, container: Container, *, patience: float = _PATIENCE_SECONDS) -> None:
        self._container = container
        self._clock = container.clock
        self._patience = patience
        self._looked: float | None = None
        self._looking: asyncio.Task[list[str]] | None = None
        self._reported: list[str] = []

    async def missing(self) -> list[str]:
        """The components that do not answer, by name. The log has the reasons, once for each change."""
        now = self._clock.monotonic()
        stale = self._looked is None or now - self._looked >= _HOLDS_SECONDS
        if self._looking is None or (stale and self._looking.done()):
            self._looked = now
            self._looking = asyncio.create_task(self.look())
        return await asyncio.shield(self._looking)

    async def look(self) -> list[str]:
        """Ask all of them now."""
        checks = self._checks()
        reasons = await asyncio.gather(*(self._reason(*each) for each in checks.items()))
        missing = {name: reason for name, reason in zip(checks, reasons, strict=True) if reason}
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

    async def _reason(self, component: str, check: Callable[[], Awaitable[object]]) -> str:
        try:
            async with asyncio.timeout(self._patience):
                await check()
        except TimeoutError:
            return str(Fault.late(component, self._patience))
        except CragsideError as error:
            fault = str(Fault.of(component, error, error.message))
            return f"{fault} [{error.where}]" if error.where else fault
        except Exception:
            _log.exception("A component failed")
            return str(Fault.unexpected(component))
        return ""
