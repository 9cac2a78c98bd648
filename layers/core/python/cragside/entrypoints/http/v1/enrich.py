"""The route that adds evidence to a prompt."""

import json
from typing import Any

from fastapi import APIRouter, Request, Response

from cragside.application.contract import enhanced_request
from cragside.application.enricher import Enriched
from cragside.domain.prompt import any_question_in, question_in
from cragside.entrypoints.end_user_in_request import end_user_of
from cragside.entrypoints.http.body_limit import json_object
from cragside.entrypoints.http.errors import error_responses
from cragside.entrypoints.http.request_access import choose_workspace, container_of, seconds_of
from cragside.entrypoints.http.v1.enrich_models import EnrichedRequestBody, EnrichRequest, UnchangedRequest
from cragside.entrypoints.rag_headers import memory_asked, wish_of

_BODY = {"content": {"application/json": {"schema": EnrichRequest.model_json_schema()}}, "required": True}
_HEADER = {
    "in": "header",
    "name": "X-RAG",
    "description": "`always`: the prompt needs no command. `never`: the request is returned unchanged.",
    "schema": {"type": "string", "enum": ["always", "never"]},
}
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "model": EnrichedRequestBody | UnchangedRequest,
        "description": "The request, enriched if it had the command.",
    }
}

router = APIRouter(tags=["enrich"], responses=error_responses())


@router.post("/v1/enrich", openapi_extra={"requestBody": _BODY, "parameters": [_HEADER]}, responses=_ANSWER)
async def enrich(request: Request) -> Response:
    """Add evidence to a request whose prompt begins with the command. Other requests are returned unchanged.

    With `X-RAG: always` a prompt gets evidence without the command, with `X-RAG: never` none does.
    """
    # No dependencies here: FastAPI takes time to resolve them, and this route is the busiest.
    container = container_of(request)
    body = await json_object(request)
    wish = wish_of(request.scope["headers"])
    read = any_question_in if wish == "always" else question_in
    question = None if wish == "never" else read(body, container.settings.command_prefix)
    if wish == "never":
        enriched = Enriched(body, None)
    elif question is None:  # its other fields are not checked
        enriched = await container.enricher.enrich(body)
    else:
        enriched = await container.enricher.enrich(
            body,
            question=question,
            workspace=choose_workspace(request, body.get("workspace")),
            memory=memory_asked(request.scope["headers"]),
            end_user=end_user_of(request.scope["headers"], body),
            timeout=seconds_of(request),
        )
    request.state.rag_context = enriched.rag_context
    # ASCII can express all input, even half a surrogate pair.
    return Response(json.dumps(enhanced_request(enriched)), media_type="application/json")
