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
from cragside.entrypoints.options import memory_asked

_SCHEMA = {"schema": models.EnrichRequest.model_json_schema()}
_BODY = {"content": {"application/json": _SCHEMA}, "required": True}


def router(container: Container, access: Access) -> APIRouter:
    """`POST /v1/enrich`."""
    routes = APIRouter(tags=["enrich"])

    @routes.post("/v1/enrich", responses=failures(), openapi_extra={"requestBody": _BODY})
    async def enrich(request: Request) -> Response:
        """The request with evidence in its prompt and `metadata.rag_context`; untouched without the command."""
        body = await json_object(request, container.settings.max_body_bytes)
        # What does not ask for evidence comes back as it is, whatever it names.
        asks = question_in(body, container.settings.command_prefix) is not None
        workspace = access.workspace(request, body.get("workspace")) if asks else None
        ends = getattr(request.state, "ends", None)
        enriched = await container.enricher.enrich(
            body,
            workspace=workspace,
            memory=memory_asked(request.scope["headers"]) if asks else None,
            timeout=None if ends is None else ends - time.monotonic(),
        )
        request.state.rag_context = enriched.rag_context
        # Escaped to ASCII, so that whatever a client could send (half a surrogate pair, say) can be sent back.
        return Response(json.dumps(enhanced_request(enriched)), media_type="application/json")

    return routes
