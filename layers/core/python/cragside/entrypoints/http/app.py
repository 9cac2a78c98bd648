"""The FastAPI application with all of cragside's own routes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI

from cragside import __version__
from cragside.bootstrap import Container
from cragside.entrypoints.access import Keys
from cragside.entrypoints.audit import Audit
from cragside.entrypoints.http.errors import install_error_handlers
from cragside.entrypoints.http.middleware import AuditedRoutes, CrossOrigin
from cragside.entrypoints.http.request_bodies import UploadMemory
from cragside.entrypoints.http.route_groups import GROUPS
from cragside.entrypoints.origins import Origins

if TYPE_CHECKING:
    from cragside.entrypoints.http.health import Exposition

# The files of all requests together may take the memory of this many files of the largest size.
_LARGEST_FILES = 4


def _openapi(prefix: str | None) -> dict[str, Any]:
    from cragside.entrypoints.http.openapi import openapi_document

    return openapi_document(prefix)


def create_app(
    container: Container, *, keys: Keys | None = None, raises: bool = False, exposition: "Exposition | None" = None
) -> FastAPI:
    """cragside's routes for a container. The container is closed when the application stops.

    `keys` provide the known tokens at each request; without them the container's are used. A host with its own time
    limit sets `ends` (by the container's clock) in the ASGI scope's `state`, and finds `rag_context` there afterwards.

    With `raises`, errors of the use cases are raised instead of answered: for callers in this process, who may see more
    than clients. `exposition` makes the answer of `/metrics`; without it the route answers 404.
    """
    configured = container.settings

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await container.close()

    # FastAPI's own documentation routes would need no token.
    app = FastAPI(
        title="cragside",
        version=__version__,
        lifespan=lifespan,
        openapi_url=None,
        redirect_slashes=False,
        routes=list(GROUPS),
    )
    app.openapi = partial(_openapi, configured.path_prefix)  # type: ignore[method-assign]  # FastAPI's way to replace it
    app.state.container = container
    app.state.keys = keys or Keys(container)
    app.state.exposition = exposition
    app.state.shared = {}
    app.state.upload_memory = UploadMemory(_LARGEST_FILES * configured.max_file_bytes)
    audit = Audit(container)
    if audit.wanted:
        app.add_middleware(AuditedRoutes, audit=audit)
    app.add_middleware(CrossOrigin, origins=Origins(configured.allowed_origins))
    install_error_handlers(app, raises=raises)
    return app
