"""The FastAPI application: enrichment and health."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI, Request, Response

from cragside import __version__
from cragside.application.contract import enhanced_request
from cragside.bootstrap import Container
from cragside.domain.errors import Unauthorized
from cragside.entrypoints.access import authorised
from cragside.entrypoints.http import errors, schemas
from cragside.entrypoints.http.body import json_object

_ENRICH_SCHEMA = {"schema": schemas.EnrichRequest.model_json_schema()}
_ENRICH_BODY = {"content": {"application/json": _ENRICH_SCHEMA}, "required": True}
_FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"model": schemas.ErrorBody, "description": code} for code, status in errors.STATUS.items()
}


def create_app(container: Container) -> FastAPI:
    """cragside's routes for a container, which is closed when the application stops."""
    settings = container.settings
    token = settings.api_token.get_secret_value() if settings.api_token else None

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await container.close()

    async def authorise(request: Request) -> None:
        if not authorised(request.scope["headers"], token):
            raise Unauthorized("Send the token as Authorization: Bearer or as X-API-Key.")

    app = FastAPI(title="cragside", version=__version__, lifespan=lifespan, redoc_url=None)
    errors.install(app)

    @app.get("/healthz")
    async def healthz() -> dict[str, bool]:
        """Whether the process answers; never asks for a token."""
        return {"ok": True}

    @app.get("/health", dependencies=[Depends(authorise)])
    async def health() -> dict[str, Any]:
        """LightRAG's health shape, with what is configured."""
        return {
            "status": "healthy",
            "core_version": __version__,
            "api_version": __version__,
            "auth_mode": "enabled" if token else "disabled",
            "webui_available": False,
            "pipeline_busy": False,
            "configuration": {
                "workspace": settings.workspace,
                "threshold": settings.threshold,
                "ollama": settings.ollama_base_url is not None,
                "search": settings.searxng_host is not None,
            },
        }

    @app.post(
        "/v1/enrich",
        dependencies=[Depends(authorise)],
        responses=_FAILURES,
        openapi_extra={"requestBody": _ENRICH_BODY},
    )
    async def enrich(request: Request) -> Response:
        """The request with evidence in its prompt and `metadata.rag_context`; untouched without the command."""
        body = await json_object(request, settings.max_body_bytes)
        enhanced = enhanced_request(await container.enricher.enrich(body))
        # Escaped to ASCII, so that whatever a client could send (half a surrogate pair, say) can be sent back.
        return Response(json.dumps(enhanced), media_type="application/json")

    return app
