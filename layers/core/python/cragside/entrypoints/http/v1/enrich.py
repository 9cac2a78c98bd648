"""The route that adds evidence to a prompt."""

import json
import time
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from cragside.application.contract import enhanced_request
from cragside.domain.prompt import question_in
from cragside.entrypoints.http.body_limit import json_object
from cragside.entrypoints.http.errors import error_responses
from cragside.entrypoints.http.request_access import choose_workspace, container_of
from cragside.entrypoints.memory_header import memory_asked


class EnrichRequest(BaseModel):
    """The agent contract's request. It has a `prompt` or `messages`. Unknown fields come back unchanged."""

    model_config = ConfigDict(extra="allow")

    prompt: str | None = Field(None, description="The user's prompt; enriched if it begins with the command.")
    messages: list[dict[str, Any]] | None = Field(None, description="Chat messages in Ollama's or OpenAI's form.")
    id: str | None = Field(None, description="Request id; generated if missing.")
    timestamp: str | None = Field(None, description="ISO 8601; generated if missing.")
    stream: bool | None = Field(None, description="Whether the response should be streamed; passed on.")
    user_id: str | None = Field(None, description="The user; passed on.")
    model: str | None = Field(None, description="Ollama model of the request; it may also grade the evidence.")
    workspace: str | None = Field(None, description="The knowledge base to ask.")
    persona: str | None = Field(None, description="Template of the system prompt, such as `witness-de`.")
    compress: bool | None = Field(None, description="Whether to insert only the relevant strips of passages.")
    memory: bool | None = Field(
        None,
        description="Whether to add earlier exchanges after the evidence. Default: `X-RAG-Memory`, else the settings.",
    )
    metadata: dict[str, Any] | None = Field(None, description="Passed on; `rag_context` is added to it.")


_SCHEMA = {"schema": EnrichRequest.model_json_schema()}
_BODY = {"content": {"application/json": _SCHEMA}, "required": True}


router = APIRouter(tags=["enrich"], responses=error_responses())


@router.post("/v1/enrich", openapi_extra={"requestBody": _BODY})
async def enrich(request: Request) -> Response:
    """The request with evidence in its prompt and `metadata.rag_context`; unchanged without the command."""
    # No dependencies here: FastAPI takes time to resolve them, and this route is the busiest.
    container = container_of(request)
    body = await json_object(request)
    question = question_in(body, container.settings.command_prefix)
    if question is None:  # its other fields are not checked
        enriched = await container.enricher.enrich(body)
    else:
        ends = getattr(request.state, "ends", None)
        enriched = await container.enricher.enrich(
            body,
            question=question,
            workspace=choose_workspace(request, body.get("workspace")),
            memory=memory_asked(request.scope["headers"]),
            timeout=None if ends is None else ends - time.monotonic(),
        )
    request.state.rag_context = enriched.rag_context
    # ASCII can express all input, even half a surrogate pair.
    return Response(json.dumps(enhanced_request(enriched)), media_type="application/json")
