"""The FastAPI application: enrichment and health."""

import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol

from fastapi import Depends, FastAPI, Request, Response

from cragside import __version__
from cragside.application.contract import enhanced_request
from cragside.application.enricher import Enricher
from cragside.domain.errors import Unauthorized
from cragside.entrypoints.access import authorised
from cragside.entrypoints.http import errors, schemas
from cragside.entrypoints.http.body import json_object
from cragside.settings import Settings

_ENRICH_SCHEMA = {"schema": schemas.EnrichRequest.model_json_schema()}
_ENRICH_BODY = {"content": {"application/json": _ENRICH_SCHEMA}, "required": True}
_FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"model": schemas.ErrorBody, "description": code} for code, status in errors.STATUS.items()
}


class Application(Protocol):
    """What the routes need of a container; one that builds itself at the first question will do."""

    @property
    def settings(self) -> Settings:
        """The settings."""
        ...

    @property
    def enricher(self) -> Enricher:
        """The use case."""
        ...

    def api_token(self) -> str | None:
        """The token that requests have to bring, None for none."""
        ...

    async def close(self) -> None:
        """Close what was opened."""
        ...


def create_app(container: Application, *, api_token: Callable[[], str | None] | None = None) -> FastAPI:
    """cragside's routes for a container, which is closed when the application stops.

    `api_token` is asked at each request for the token that it has to bring, on the event loop; unset, the container is.
    A host that grants a request less time than the settings says so in the ASGI scope's `state`: `ends` is when the
    time is up, by `time.monotonic`. After the answer it finds the `rag_context` there.
    """
    settings = container.settings
    expected = api_token or container.api_token

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await container.close()

    async def authorise(request: Request) -> None:
        if not authorised(request.scope["headers"], expected()):
            raise Unauthorized("Send the token as Authorization: Bearer or as X-API-Key.")

    # FastAPI's own routes would ask for no token.
    app = FastAPI(title="cragside", version=__version__, lifespan=lifespan, openapi_url=None)
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
            "auth_mode": "enabled" if settings.api_token or settings.api_token_secret else "disabled",
            "webui_available": False,
            "pipeline_busy": False,
            "configuration": {
                "workspace": settings.workspace,
                "threshold": settings.threshold,
                "ollama": settings.ollama_base_url is not None,
                "search": settings.searxng_host is not None,
            },
        }

    @app.get("/openapi.json", dependencies=[Depends(authorise)], include_in_schema=False)
    async def openapi() -> dict[str, Any]:
        """The routes in OpenAPI's form."""
        return app.openapi()

    @app.post(
        "/v1/enrich",
        dependencies=[Depends(authorise)],
        responses=_FAILURES,
        openapi_extra={"requestBody": _ENRICH_BODY},
    )
    async def enrich(request: Request) -> Response:
        """The request with evidence in its prompt and `metadata.rag_context`; untouched without the command."""
        body = await json_object(request, settings.max_body_bytes)
        ends = getattr(request.state, "ends", None)
        enriched = await container.enricher.enrich(body, timeout=None if ends is None else ends - time.monotonic())
        request.state.rag_context = enriched.rag_context
        # Escaped to ASCII, so that whatever a client could send (half a surrogate pair, say) can be sent back.
        return Response(json.dumps(enhanced_request(enriched)), media_type="application/json")

    return app
