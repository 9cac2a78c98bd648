"""`cragside serve`: the HTTP service and the Ollama proxy."""

import ipaddress
from typing import TYPE_CHECKING, Annotated

import typer

from cragside.domain.errors import ConfigurationError
from cragside.entrypoints.cli.session import session_of

if TYPE_CHECKING:
    from cragside.bootstrap import Container

DEFAULT_PORT = 8642


def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port to listen on.")] = DEFAULT_PORT,
    allow_anonymous: Annotated[
        bool, typer.Option("--allow-anonymous", help="Listen beyond this machine without RAG_API_TOKEN.")
    ] = False,
) -> None:
    """Serve POST /v1/enrich, and Ollama's and OpenAI's API in front of OLLAMA_BASE_URL.

    Point an Ollama client at this address instead of Ollama's: prompts that begin with /rag get evidence, everything
    else passes through byte for byte.
    """
    session = session_of(context)
    settings = session.settings()
    if settings.api_token is None and not allow_anonymous and not is_loopback(host):
        raise ConfigurationError(
            f"{host} is reachable from other machines and RAG_API_TOKEN is not set. "
            "Set it, or say --allow-anonymous to serve whoever asks."
        )

    async def work(container: "Container") -> None:
        from cragside.entrypoints.proxy.server import serve as listen

        await listen(container, host, port)

    session.run(settings, work)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address. A name other than localhost may stand for anything."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
