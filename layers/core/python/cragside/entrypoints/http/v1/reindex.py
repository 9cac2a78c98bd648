"""The route that builds a workspace anew with the configured embedding model."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from cragside.application.contract import error_envelope
from cragside.domain.errors import CragsideError, DeadlineExceeded
from cragside.domain.names import memory_of
from cragside.entrypoints.followed_runs import followed
from cragside.entrypoints.http.body_limit import BoundedRoute
from cragside.entrypoints.http.errors import error_responses, for_client, hidden
from cragside.entrypoints.http.request_access import WORKSPACE, AppContainer, choose_workspace
from cragside.entrypoints.http.sent_events import EVENTS, STREAMED, sent_event
from cragside.ports.clock import Clock
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


class ReindexRequest(BaseModel):
    """Which workspace to build anew."""

    model_config = ConfigDict(extra="forbid")

    workspace: str | None = Field(None, description=WORKSPACE)


@router.post("/v1/reindex", response_class=StreamingResponse, responses=_ANSWER)
async def reindex_workspace(request: Request, body: ReindexRequest, container: AppContainer) -> Response:
    """Build a workspace and its memory anew with the configured embedding model.

    The old store answers until the new one is complete. A client that leaves stops it, and the old store stays. While
    one is under way, another is refused.
    """
    workspace = choose_workspace(request, body.workspace)
    workspaces = container.workspaces
    await (await workspaces.open(workspace)).documents.check_writable()
    total = sum([(await workspaces.stored(name)).documents for name in (workspace, memory_of(workspace))])
    items = followed(_run(workspaces, workspace, getattr(request.state, "ends", None), container.clock))
    first = asyncio.ensure_future(_next(items))
    await asyncio.wait({first}, timeout=_PATIENCE_SECONDS)
    if first.done() and (refused := first.exception()) is not None:
        raise refused
    return StreamingResponse(_events(request, first, items, total), media_type=EVENTS, headers=STREAMED)


def _run(workspaces: Workspaces, workspace: str, ends: float | None, clock: Clock) -> Any:
    async def run(progress: Callable[[str], None]) -> int:
        seconds = None if ends is None else max(0.0, ends - clock.monotonic() - _MARGIN_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                return await workspaces.reindex(workspace, progress)
        except TimeoutError as error:
            message = "The host's time was over before all was built. Run cragside reindex where no limit applies."
            raise DeadlineExceeded(message) from error

    return run


async def _next(items: AsyncIterator[str | int]) -> str | int:
    return await anext(items)


async def _events(
    request: Request, first: asyncio.Future[str | int], items: AsyncIterator[str | int], total: int
) -> AsyncIterator[bytes]:
    done = 0
    if not first.done():
        yield sent_event("progress", {"done": 0, "total": total, "name": ""})
    identifier = getattr(request.state, "identifier", None)
    try:
        item = await first
        while isinstance(item, str):
            done += 1
            yield sent_event("progress", {"done": done, "total": max(total, done), "name": item})
            item = await anext(items)
        yield sent_event("done", {"documents": item})
    except CragsideError as error:
        yield sent_event("failed", error_envelope(for_client(error), identifier))
    except Exception as error:
        yield sent_event("failed", error_envelope(hidden(error, "POST", "/v1/reindex"), identifier))
    finally:
        first.cancel()
        await items.aclose()  # type: ignore[attr-defined]  # it is a generator
