"""Evidence for a prompt."""

import json
import time

from fastapi import APIRouter, Request, Response

from cragside.application.contract import enhanced_request
from cragside.bootstrap import Container
from cragside.domain.prompt import question_in
from cragside.entrypoints.http import models
from cragside.entrypoints.http.body_limit import json_object
from cragside.entrypoints.http.errors import failures
from cragside.entrypoints.http.tenancy import Access
from cragside.entrypoints.memory_header import memory_asked

_SCHEMA = {"schema": models.EnrichRequest.model_json_schema()}
_BODY = {"content": {"application/json": _SCHEMA}, "required": True}


def router(container: Container, access: Access) -> APIRouter:
    """`POST /v1/enrich`."""
    routes = APIRouter(tags=["enrich"])

    @routes.post("/v1/enrich", responses=failures(), openapi_extra={"requestBody": _BODY})
    async def enrich(request: Request) -> Response:
        """The request with evidence in its prompt and `metadata.rag_context`; unchanged without the command."""
        body = await json_object(request, container.settings.max_body_bytes)
        question = question_in(body, container.settings.command_prefix)
        if question is None:  # its other fields are not checked
            enriched = await container.enricher.enrich(body)
        else:
            ends = getattr(request.state, "ends", None)
            enriched = await container.enricher.enrich(
                body,
                question=question,
                workspace=access.workspace(request, body.get("workspace")),
                memory=memory_asked(request.scope["headers"]),
                timeout=None if ends is None else ends - time.monotonic(),
            )
        request.state.rag_context = enriched.rag_context
        # ASCII can express all input, even half a surrogate pair.
        return Response(json.dumps(enhanced_request(enriched)), media_type="application/json")

    return routes
