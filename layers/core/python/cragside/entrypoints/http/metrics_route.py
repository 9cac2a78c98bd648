"""The figures of a server, for Prometheus."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from fastapi import APIRouter, Request, Response

from cragside.composition.databases import standing
from cragside.domain.errors import CragsideError, Forbidden, NotFound
from cragside.entrypoints.http.errors import error_responses
from cragside.entrypoints.http.request_access import AppContainer
from cragside.ports.index_queue import QueueStats
from cragside.ports.telemetry import Standing

T = TypeVar("T")
Exposition = Callable[[QueueStats | None, Standing | None], bytes]
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PATIENCE_SECONDS = 2.0
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus' text format."}
}

router = APIRouter(tags=["health"])


@router.get(
    "/metrics",
    response_class=Response,
    responses={**_ANSWER, **error_responses("unauthorized", "forbidden", "not_found")},
)
async def metrics(request: Request, container: AppContainer) -> Response:
    """The counts of all processes of this server, in Prometheus' text format.

    They count the requests of all workspaces, so a token must open all of them.
    """
    exposition: Exposition | None = request.app.state.exposition
    if request.state.narrowed_grant.workspaces is not None:
        raise Forbidden("The figures are about all workspaces. Use a token that opens all of them.")
    if exposition is None:
        raise NotFound("Only cragside serve counts requests.")
    database = container.database
    stats, known = await asyncio.gather(
        _known(container.queue.stats()), _known(standing(database)) if database is not None else _known(None)
    )
    return Response(exposition(stats, known), media_type=CONTENT_TYPE)


async def _known(asked: Awaitable[T] | None) -> T | None:
    """The answer, None if there is none soon: the other figures are known all the same."""
    if asked is None:
        return None
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            return await asked
    except (CragsideError, TimeoutError):
        return None
