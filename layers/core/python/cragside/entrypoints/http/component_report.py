"""How the components of a running service do, as its clients may read it."""

import asyncio
import logging
from collections.abc import Sequence

from cragside.bootstrap import Container
from cragside.domain.errors import CragsideError, ServiceUnavailable
from cragside.entrypoints.component_checks import examine_components, examine_folder, examine_installation
from cragside.entrypoints.error_lines import one_line
from cragside.entrypoints.findings import Finding, Manner
from cragside.entrypoints.http.errors import for_client

# Seconds for which a report holds: to ask again and again must not become load on other hosts.
_HOLDS_SECONDS = 5.0
_log = logging.getLogger("cragside")


def message_for_clients(error: Exception) -> str:
    """One line without paths and addresses. The log has them."""
    if not isinstance(error, CragsideError):
        _log.warning("A component failed", exc_info=error)
        return f"something inside failed ({type(error).__name__}); the log has the details"
    shown = for_client(error)
    return one_line(f"{shown.component}: {shown.message}" if isinstance(shown, ServiceUnavailable) else shown.message)


FOR_CLIENTS = Manner(3.0, thorough=False, places=False, message=message_for_clients)


class ComponentReport:
    """Examines the components. Those who ask at the same time share one examination."""

    def __init__(self, container: Container, *, manner: Manner = FOR_CLIENTS) -> None:
        self._container = container
        self._clock = container.clock
        self._manner = manner
        self._begun = 0.0
        self._examining: asyncio.Task[Sequence[Finding]] | None = None

    async def findings(self) -> Sequence[Finding]:
        """What `cragside doctor` examines, without its long tests."""
        now = self._clock.monotonic()
        if self._examining is None or (self._examining.done() and now - self._begun >= _HOLDS_SECONDS):
            self._begun = now
            self._examining = asyncio.create_task(self._examine())
        return await asyncio.shield(self._examining)

    async def _examine(self) -> Sequence[Finding]:
        folder = await asyncio.to_thread(examine_folder, self._container.settings, self._manner)
        components = await examine_components(self._container, self._manner)
        return [*examine_installation(), Finding("settings", "ok"), folder, *components]
