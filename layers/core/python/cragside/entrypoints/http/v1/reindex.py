"""The route that builds a workspace anew with the configured embedding model."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.sse import ServerSentEvent

from cragside.domain.errors import DeadlineExceeded
from cragside.domain.memory_name import memory_of
from cragside.entrypoints.followed_runs import first_of, followed
from cragside.entrypoints.http.body_limit import BoundedRoute
from cragside.entrypoints.http.errors import error_responses
from cragside.entrypoints.http.models import WorkspaceRequest
from cragside.entrypoints.http.request_access import AppContainer, choose_workspace, seconds_of
from cragside.entrypoints.http.sent_events import EVENTS, Events, event_stream
from cragside.ports.workspaces import Workspaces

# A refusal comes at once and has a status of its own. What takes longer has begun.
_PATIENCE_SECONDS = 1.0
# Seconds that a host with a time limit needs after the last event.
_MARGIN_SECONDS = 1.0
_DESCRIPTION = (
    'Server-sent events: `progress` with `{"done", "total", "name"}` after each document, then `done` with '
    '`{"documents"}` or `failed` with an ErrorBody.'
)
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"content": {EVENTS: {"schema": {"type": "string", "description": _DESCRIPTION}}}, "description": "Progress."}
}

router = APIRouter(tags=["settings"], route_class=BoundedRoute, responses=error_responses())


@router.post("/v1/reindex", response_class=StreamingResponse, responses=_ANSWER)
async def reindex_workspace(request: Request, body: WorkspaceRequest, container: AppContainer) -> Response:
    """Build a workspace and its memory anew with the configured embedding model.

    The old store answers until the new one is complete. A client that leaves stops it, and the old store stays. While
    one is under way, another is refused.
    """
    workspace = choose_workspace(request, body.workspace)
    workspaces = container.workspaces
    await (await workspaces.open(workspace)).documents.check_writable()
    total = sum([(await workspaces.stored(name)).documents for name in (workspace, memory_of(workspace))])
    items = followed(_run(workspaces, workspace, seconds_of(request)))
    first = asyncio.ensure_future(first_of(items))
    await asyncio.wait({first}, timeout=_PATIENCE_SECONDS)
    if first.done() and (refused := first.exception()) is not None:
        raise refused
    return event_stream(request, _events(first, items, total))


def _run(workspaces: Workspaces, workspace: str, left: float | None) -> Any:
    async def run(progress: Callable[[str], None]) -> int:
        seconds = None if left is None else max(0.0, left - _MARGIN_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                return await workspaces.reindex(workspace, progress)
        except TimeoutError as error:
            message = "The host's time was over before all was built. Run cragside reindex where no limit applies."
            raise DeadlineExceeded(message) from error

    return run


async def _events(first: asyncio.Future[str | int], items: AsyncIterator[str | int], total: int) -> Events:
    done = 0
    if not first.done():
        yield _progress(0, total, "")
    try:
        item = await first
        while isinstance(item, str):
            done += 1
            yield _progress(done, max(total, done), item)
            item = await anext(items)
        yield ServerSentEvent(event="done", data={"documents": item})
    finally:
        first.cancel()
        await items.aclose()  # type: ignore[attr-defined]  # it is a generator


def _progress(done: int, total: int, name: str) -> ServerSentEvent:
    return ServerSentEvent(event="progress", data={"done": done, "total": total, "name": name})
