"""Sends a command's requests to a service or to this process, and has the options for that."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from cragside.bootstrap import Container
    from cragside.entrypoints.cli.service import Service
    from cragside.entrypoints.cli.session import Session
    from cragside.settings import Settings

Result = TypeVar("Result")

Address = Annotated[
    str | None,
    typer.Option("--api", metavar="URL", help="Address of a running cragside. Default: this process does the work."),
]
Token = Annotated[str | None, typer.Option("--token", metavar="TOKEN", help="Token for --api. Default: RAG_API_TOKEN.")]
WorkspaceName = Annotated[
    str | None,
    typer.Option("--workspace", "--collection", "-w", metavar="NAME", help="Default: RAG_WORKSPACE."),
]
LocalWorkspace = Annotated[
    str | None, typer.Option("--workspace", "-w", metavar="NAME", help="Default: RAG_WORKSPACE.")
]

# A service may have a model to ask before it answers.
_SECONDS = 300.0
# Whoever runs a command in this process may read and write the files that the routes work on.
_NOT_ASKED = (
    "api_token", "api_token_secret", "workspace_tokens", "tokens_file", "audit_log",
    "limit_workspaces", "limit_documents", "limit_bytes",
)  # fmt: skip


def ask(
    session: "Session",
    settings: "Settings",
    work: Callable[["Service"], Awaitable[Result]],
    *,
    address: str | None = None,
    token: str | None = None,
) -> Result:
    """Run `work` with the service at `address`, or with this process if there is none."""
    if address is not None:
        return _ask_service(settings, work, address, token)

    async def inside(container: "Container") -> Result:
        from cragside.client import Client
        from cragside.entrypoints.cli.in_process_transport import InProcess
        from cragside.entrypoints.cli.service import Service

        transport = InProcess(container)
        # What is asked has deadlines of its own, which the user may have raised.
        client = Client("http://localhost", workspace=settings.workspace, seconds=None, transport=transport)
        async with client:
            return await work(Service(client, container))

    return session.run(settings.model_copy(update=dict.fromkeys(_NOT_ASKED)), inside)


def given_once(argument: str | None, option: str | None, *, name: str, flag: str) -> str | None:
    """What a command was given as its argument or as an option. Raises `ValidationError` if it has both."""
    if argument is not None and option is not None:
        from cragside.domain.errors import ValidationError

        raise ValidationError(f"{name} and {flag} mean the same. Give one of them.")
    return argument if option is None else option


def _ask_service(
    settings: "Settings", work: Callable[["Service"], Awaitable[Result]], address: str, token: str | None
) -> Result:
    import asyncio

    from cragside.client import Client
    from cragside.domain.errors import ConfigurationError, Unauthorized
    from cragside.entrypoints.cli.service import Service

    if address.rstrip("/").endswith("/v1"):
        raise ConfigurationError("--api is the address of the service, without /v1.")
    configured = settings.api_token.get_secret_value() if settings.api_token else None
    client = Client(
        address,
        setting="--api",
        token=token or configured,
        workspace=named_workspace(settings, address),
        seconds=_SECONDS,
    )

    async def outside() -> Result:
        async with client:
            try:
                return await work(Service(client))
            except Unauthorized:
                raise Unauthorized("The service refused the token. Set --token or RAG_API_TOKEN.") from None

    return asyncio.run(outside())


def named_workspace(settings: "Settings", address: str | None) -> str | None:
    """The workspace to request; None if the service's token decides it."""
    return settings.workspace if address is None or "workspace" in settings.model_fields_set else None
