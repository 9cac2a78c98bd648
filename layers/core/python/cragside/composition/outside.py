"""The databases outside of PostgreSQL: whether each of them can be used."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from cragside.adapters.gate import ServerFailure
from cragside.adapters.lightrag.ledger.failures import LedgerError
from cragside.domain.errors import ServiceUnavailable

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from cragside.composition.stores import Stores

Check = Callable[[], Awaitable[None]]


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

        async def ping() -> None:
            await redis.run(_ping)

        checks["values"] = _check("values", "Redis", ping)
    return checks


def _check(component: str, server: str, ask: Callable[[], Awaitable[object]]) -> Check:
    async def check() -> None:
        try:
            await ask()
        except (LedgerError, ServerFailure) as error:
            said = f"The part of the store in {server} {error.unusable}."
            raise ServiceUnavailable(component, said) from error

    return check


async def _ping(redis: "Redis") -> None:
    await redis.ping()
