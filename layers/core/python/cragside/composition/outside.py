"""The databases outside of PostgreSQL: whether each of them can be used."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from cragside.adapters.gate import ServerFailure
from cragside.adapters.lightrag.ledger.failures import LedgerError
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.faults import Fault

if TYPE_CHECKING:
    from cragside.composition.stores import Stores

Check = Callable[[], Awaitable[None]]
# Nobody waits for these checks.
_PATIENCE_SECONDS = 10.0


def outside_checks(stores: "Stores") -> dict[str, Check]:
    """A check of each database that is configured, by its component. It asks for something small.

    A check raises `ServiceUnavailable`, whose message has the remedy if there is one.
    """
    checks: dict[str, Check] = {}
    if (graphs := stores.graphs) is not None:
        checks["graph"] = _check("graph", "Neo4j", graphs.server)
    if (vectors := stores.vectors) is not None:
        checks["vectors"] = _check("vectors", "Qdrant", vectors.server)
    if (redis := stores.redis) is not None:
        checks["values"] = _check("values", "Redis", redis.ping)
    return checks


async def faults(stores: "Stores", patience: float = _PATIENCE_SECONDS) -> list[str]:
    """What is wrong with the databases that are configured, and what to do; [] if all can be used."""

    async def fault(component: str, check: Check) -> str:
        try:
            async with asyncio.timeout(patience):
                await check()
        except TimeoutError:
            return str(Fault.late(component, patience))
        except ServiceUnavailable as error:
            return str(Fault.of(component, error, error.message))
        return ""

    found = await asyncio.gather(*(fault(*each) for each in outside_checks(stores).items()))
    return [each for each in found if each]


def _check(component: str, server: str, ask: Callable[[], Awaitable[object]]) -> Check:
    async def check() -> None:
        try:
            await ask()
        except (LedgerError, ServerFailure) as error:
            message = f"The part of the store in {server} {error.unusable}."
            raise ServiceUnavailable(component, message) from error

    return check
