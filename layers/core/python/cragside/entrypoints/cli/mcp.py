"""`cragside mcp`: serves the Model Context Protocol on standard input and output."""

from typing import TYPE_CHECKING

from cragside.domain.errors import ConfigurationError
from cragside.entrypoints.cli.target import Target, local_or_service
from cragside.entrypoints.log import logged

if TYPE_CHECKING:
    from cragside.entrypoints.cli.service import Service


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
        async with service.working(until_idle=False), use_client(service.client):
            await create_server().run_stdio_async()

    # The SDK would log everything, with questions, if nobody did.
    with logged(target.settings.log_level, target.settings.log_format):
        target.ask(work)
