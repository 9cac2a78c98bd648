"""`cragside mcp`: serves the Model Context Protocol on standard input and output."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from cragside.domain.errors import ConfigurationError
from cragside.entrypoints.cli.target import Target, local_or_service
from cragside.entrypoints.log import logged, message_of

if TYPE_CHECKING:
    from cragside.entrypoints.cli.service import Service

_log = logging.getLogger("cragside")


@local_or_service
def mcp(target: Target) -> None:
    """Serve the Model Context Protocol on standard input and output, for a host that starts this command.

    Its tools are search, ask, explain, recall, remember and ingest. Documents are resources. The same protocol is
    served over HTTP at /mcp by `cragside serve`. Both need the extra `mcp`.
    """
    try:
        from cragside.entrypoints.mcp.server import create_server, use_client
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            "The Model Context Protocol is not installed. Install the extra `mcp` of cragside."
        ) from error

    async def work(service: "Service") -> None:
        greeted, server = asyncio.Event(), create_server()

        async def heard(ctx: Any, call_next: Any) -> Any:
            answer = await call_next(ctx)
            if ctx.method != "initialize":  # so the host has the answer to its greeting
                greeted.set()
            return answer

        server.middleware.append(heard)
        async with _indexing(service, greeted), use_client(service.client):
            await server.run_stdio_async()

    # The SDK would log everything, with questions, if nobody did.
    with logged(target.settings.log_level, target.settings.log_format):
        target.ask(work)


@asynccontextmanager
async def _indexing(service: "Service", greeted: asyncio.Event) -> AsyncIterator[None]:
    """Index inside the block, once the host is greeted: hosts wait briefly, and the indexer takes a second to load."""

    async def index() -> None:
        await greeted.wait()
        try:
            async with service.working(until_idle=False):
                await asyncio.Event().wait()
        except Exception as error:  # the tools work all the same, or tell what is wrong
            _log.error("Nothing is indexed here: %s", message_of(error))

    indexing = asyncio.create_task(index())
    try:
        yield
    finally:
        indexing.cancel()
        await asyncio.gather(indexing, return_exceptions=True)
