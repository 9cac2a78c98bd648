"""The route that explains how a prompt gets its evidence."""

import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect

from cragside.application.contract import error_envelope
from cragside.domain.errors import CragsideError, ProcessingError
from cragside.domain.explanation import Explanation
from cragside.domain.outcome import Step, Watch
from cragside.entrypoints.client_gone import ClientGone, while_connected
from cragside.entrypoints.end_user_in_request import end_user_of
from cragside.entrypoints.followed_runs import followed
from cragside.entrypoints.http.body_limit import json_object
from cragside.entrypoints.http.errors import error_responses, for_client, hidden
from cragside.entrypoints.http.request_access import choose_workspace, container_of
from cragside.entrypoints.http.sent_events import EVENTS, STREAMED, sent_event
from cragside.entrypoints.http.v1.enrich_models import EnrichRequest
from cragside.entrypoints.http.v1.explain_models import ExplanationBody
from cragside.entrypoints.rag_headers import memory_asked

_EVENTS_DESCRIPTION = (
    "With `Accept: text/event-stream`: server-sent events. `step` with a StepBody whenever a step ends, then `done` "
    "with the ExplanationBody, or `failed` with an ErrorBody."
)
_BODY = {"content": {"application/json": {"schema": EnrichRequest.model_json_schema()}}, "required": True}
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "model": ExplanationBody,
        "description": "The run and its evidence.",
        "content": {EVENTS: {"schema": {"type": "string", "description": _EVENTS_DESCRIPTION}}},
    }
}

router = APIRouter(tags=["enrich"], responses=error_responses())


@router.post("/v1/explain", openapi_extra={"requestBody": _BODY}, responses=_ANSWER)
async def explain(request: Request) -> Response:
    """Explain which evidence a prompt would get: each step with its time, each candidate with its reasons.

    It takes what `/v1/enrich` takes and runs the same graph. The command before the question is optional. No model
    writes an answer. A client that leaves stops the run.
    """
    body = await json_object(request)
    workspace, memory = choose_workspace(request, body.get("workspace")), memory_asked(request.scope["headers"])
    ends, container = getattr(request.state, "ends", None), container_of(request)

    async def run(watch: Watch) -> Explanation:
        explanation = await container.explainer.explain(
            body,
            watch=watch,
            workspace=workspace,
            memory=memory,
            end_user=end_user_of(request.scope["headers"], body),
            timeout=None if ends is None else ends - container.clock.monotonic(),
        )
        request.state.rag_context = explanation.context
        return explanation

    items = followed(run)
    try:
        if not _wants_events(request):
            return _json(await while_connected(request.receive, _last(items)))
        # An error before the first step still has a status of its own.
        first = await while_connected(request.receive, _next(items))
    except ClientGone:
        raise ClientDisconnect from None
    return StreamingResponse(_events(request, first, items), media_type=EVENTS, headers=STREAMED)


def _wants_events(request: Request) -> bool:
    accepted = ",".join(request.headers.getlist("accept")).lower().split(",")
    return any(each.partition(";")[0].strip() == EVENTS for each in accepted)


def _json(explanation: Explanation) -> Response:
    # ASCII can express all input, even half a surrogate pair.
    return Response(json.dumps(explanation.as_dict()), media_type="application/json")


async def _last(items: AsyncIterator[Step | Explanation]) -> Explanation:
    async for item in items:
        if isinstance(item, Explanation):
            return item
    raise ProcessingError("The run ended without an explanation.")


async def _next(items: AsyncIterator[Step | Explanation]) -> Step | Explanation:
    return await anext(items)


async def _events(
    request: Request, first: Step | Explanation, items: AsyncIterator[Step | Explanation]
) -> AsyncIterator[bytes]:
    yield _event(first)
    try:
        async for item in items:
            yield _event(item)
    except CragsideError as error:
        yield sent_event("failed", error_envelope(for_client(error), getattr(request.state, "identifier", None)))
    except Exception as error:
        shown = hidden(error, "POST", "/v1/explain")
        yield sent_event("failed", error_envelope(shown, getattr(request.state, "identifier", None)))


def _event(item: Step | Explanation) -> bytes:
    return sent_event("step" if isinstance(item, Step) else "done", item.as_dict())
