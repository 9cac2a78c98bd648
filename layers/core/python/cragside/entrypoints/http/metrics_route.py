"""The figures of a server, for Prometheus."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response

from cragside.composition.databases import standing
from cragside.domain.errors import NotFound
from cragside.entrypoints.http.errors import error_responses
from cragside.entrypoints.http.readiness import answer_of
from cragside.entrypoints.http.request_access import AppContainer, require_all_workspaces
from cragside.ports.figures import Standing
from cragside.ports.index_queue import QueueStats

Exposition = Callable[[QueueStats | None, Standing | None], bytes]
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
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
    require_all_workspaces(request, "The figures are about all workspaces.")
    exposition: Exposition | None = request.app.state.exposition
    if exposition is None:
        raise NotFound("Only cragside serve counts requests.")
    database = container.database
    # What does not answer soon is left out.
    (stats, _), (known, _) = await asyncio.gather(
        answer_of("queue", container.queue.stats),
        answer_of("postgres", partial(standing, database)) if database is not None else _nothing(),
    )
    return Response(exposition(stats, known), media_type=CONTENT_TYPE)


async def _nothing() -> tuple[None, str]:
    return None, ""
