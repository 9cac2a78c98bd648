"""Whether the databases outside of PostgreSQL answer."""

import asyncio
import logging
from collections.abc import Mapping

from cragside.bootstrap import Container
from cragside.composition.store_files import Check, outside_checks
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.faults import Fault

# Seconds to wait for each database, and for which an answer holds: questions about health are no load on databases.
_PATIENCE_SECONDS = 2.0
_HOLDS_SECONDS = 1.0
_log = logging.getLogger("cragside")


class Outside:
    """Asks the databases outside of PostgreSQL. Those who ask at the same time share one look."""

    def __init__(
        self,
        container: Container,
        *,
        patience: float = _PATIENCE_SECONDS,
    ) -> None:
        self._container = container
        self._clock = container.clock
        self._patience = patience
        self._looked = 0.0
        self._looking: asyncio.Task[Mapping[str, str]] | None = None

    async def reasons(self) -> Mapping[str, str]:
        """Why each database that is configured cannot be used, by its component; "" if it can."""
        now = self._clock.monotonic()
        if self._looking is None or (self._looking.done() and now - self._looked >= _HOLDS_SECONDS):
            self._looked = now
            self._looking = asyncio.create_task(self._look())
        return await asyncio.shield(self._looking)

    async def _look(self) -> Mapping[str, str]:
        checks = outside_checks(self._container)
        reasons = await asyncio.gather(*(self._reason(*each) for each in checks.items()))
        return dict(zip(checks, reasons, strict=True))

    async def _reason(self, component: str, check: Check) -> str:
        try:
            async with asyncio.timeout(self._patience):
                await check()
        except TimeoutError:
            return str(Fault.late(component, self._patience))
        except ServiceUnavailable as error:
            return str(Fault.of(component, error, error.message))
        except Exception:
            _log.exception("The %s failed", component)
            return str(Fault.unexpected(component))
        return ""
