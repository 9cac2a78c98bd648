"""`cragside mcp`: serves the Model Context Protocol on standard input and output."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from cragside.domain.errors import ConfigurationError
from cragside.entrypoints.cli.target import Target, local_or_service
from cragside.entrypoints.log import logged

if TYPE_CHECKING:
    from cragside.bootstrap import Container
    from cragside.entrypoints.cli.service import Service


@local_or_service
def mcp(target: Target) -> None:
    """Serve the Model Context Protocol on standard input and output, for a host that starts this command.

    Its tools are search, ask, explain, recall, remember and ingest. Documents are resources. The same protocol is
    served over HTTP at /mcp by `cragside serve`. Both need the extra `mcp`.
    """
    try:
        from cragside.entrypoints.mcp.server import create_server, reaching
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            "The Model Context Protocol is not installed. Install the extra `mcp` of cragside."
        ) from error

    async def work(service: "Service") -> None:
        async with _indexing(service.container), reaching(service.client):
            await create_server().run_stdio_async()

    # The SDK would log everything, with questions, if nobody did.
    with logged(target.settings.log_level, target.settings.log_format):
        target.ask(work)


@asynccontextmanager
async def _indexing(container: "Container | None") -> AsyncIterator[None]:
    """Inside the block, a worker of this process indexes what is ingested, unless a service does."""
    if container is None or not container.keeps_worker():
        yield
        return
    worker = container.worker()
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await asyncio.gather(running, return_exceptions=True)
