"""Finds the workspace that a command is about, in this process or at a service."""

import functools
import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TypeVar

import typer

from cragside.entrypoints.cli.session import Session, place_of, session_of
from cragside.entrypoints.cli.terminal import printable

if TYPE_CHECKING:
    from cragside.bootstrap import Container
    from cragside.client import Client
    from cragside.entrypoints.cli.service import Service
    from cragside.settings import Settings

Given = ParamSpec("Given")
Result = TypeVar("Result")

# A service may have a model to ask before it answers.
_SECONDS = 300.0
# A service on this machine that does not say within this time that it lives is not waited for.
_LIVES_WITHIN_SECONDS = 2.0
# What a request to a service on this machine may take beside its work.
_ON_THE_WAY_SECONDS = 5.0
# Whoever runs a command in this process may read and write the files that the routes work on.
_NOT_ASKED = (
    "api_token", "api_token_secret", "workspace_tokens", "tokens_file", "audit_log",
    "limit_workspaces", "limit_documents", "limit_bytes",
)  # fmt: skip

_Workspace = Annotated[str | None, typer.Option("--workspace", "-w", metavar="NAME", help="Default: RAG_WORKSPACE.")]


@dataclass(frozen=True, slots=True)
class Target:
    """The workspace of a command: in this process, or at the service that listens on `address`.

    `given` is the workspace that the command line names.
    """

    session: Session
    settings: "Settings"
    given: str | None = None
    address: str | None = None
    token: str | None = None

    @classmethod
    def of(
        cls, context: typer.Context, given: str | None, address: str | None = None, token: str | None = None
    ) -> "Target":
        """Make the target from the options of the command that runs."""
        session = session_of(context)
        return cls(session, session.settings(given), given, address, token)

    @property
    def workspace(self) -> str | None:
        """Return the workspace to request; None if the service's token decides it."""
        named = self.address is None or "workspace" in self.settings.model_fields_set
        return self.settings.workspace if named else None

    @property
    def options(self) -> list[str]:
        """Return the options that name this target on a command line."""
        named = {"--workspace": self.given, "--api": self.address}
        return [part for option, value in named.items() if value for part in (option, value)]

    def __str__(self) -> str:
        place = printable(self.address or place_of(self.settings))
        return f"Workspace {self.workspace} in {place}" if self.workspace else f"In {place}"

    def run(self, work: "Callable[[Container], Awaitable[Result]]") -> Result:
        """Run `work` with a container of this process."""
        return self.session.run(self.settings, work)

    def ask(self, work: "Callable[[Service], Awaitable[Result]]") -> Result:
        """Run `work` with the service, or with this process if there is no address."""
        if self.address is not None:
            return self._ask_service(work)

        async def inside(container: "Container") -> Result:
            from cragside.entrypoints.cli.service import OwnService

            return await work(OwnService(container))

        return self.session.run(self.settings.model_copy(update=dict.fromkeys(_NOT_ASKED)), inside)

    def read(self, work: "Callable[[Service], Awaitable[Result]]") -> Result:
        """Run `work`, which changes nothing, as `ask` does, or at a `cragside serve` of this home that runs."""
        from cragside.composition.serving import serving_address

        address = serving_address(self.settings) if self.address is None else None
        if address is not None:
            from cragside.domain.errors import (
                DeadlineExceeded,
                Forbidden,
                ProcessingError,
                ServiceUnavailable,
                Unauthorized,
            )

            # This process can do it where the other one cannot, or answers as no cragside does.
            unusable = (DeadlineExceeded, Forbidden, ServiceUnavailable, Unauthorized, TimeoutError)
            with suppress(*unusable, ProcessingError, KeyError, TypeError):
                return self._ask_neighbour(address, work)
        return self.ask(work)

    def _ask_neighbour(self, address: str, work: "Callable[[Service], Awaitable[Result]]") -> Result:
        import asyncio

        import httpx

        from cragside.client import Client
        from cragside.entrypoints.cli.service import Service

        token = self.settings.api_token.get_secret_value() if self.settings.api_token else None

        async def there() -> Result:
            # No proxy of the environment is asked for this machine itself.
            async with Client(
                address,
                token=token,
                workspace=self.settings.workspace,
                seconds=self.settings.timeout_seconds + _ON_THE_WAY_SECONDS,
                transport=httpx.AsyncHTTPTransport(),
            ) as client:
                async with asyncio.timeout(_LIVES_WITHIN_SECONDS):
                    await client.get("/healthz")
                return await work(Service(lambda: client))

        return asyncio.run(there())

    def request(self, work: "Callable[[Client], Awaitable[Any]]") -> Any:
        """Return the JSON that a route answers."""
        return self.ask(lambda service: work(service.client))

    def _ask_service(self, work: "Callable[[Service], Awaitable[Result]]") -> Result:
        import asyncio

        from cragside.client import Client
        from cragside.domain.errors import ConfigurationError, Unauthorized
        from cragside.entrypoints.cli.service import Service

        assert self.address is not None  # noqa: S101 (`ask` has looked)
        if self.address.rstrip("/").endswith("/v1"):
            raise ConfigurationError("--api is the address of the service, without /v1.")
        configured = self.settings.api_token.get_secret_value() if self.settings.api_token else None
        client = Client(
            self.address,
            setting="--api",
            token=self.token or configured,
            workspace=self.workspace,
            seconds=_SECONDS,
        )

        async def outside() -> Result:
            async with client:
                try:
                    return await work(Service(lambda: client))
                except Unauthorized:
                    raise Unauthorized("The service refused the token. Set --token or RAG_API_TOKEN.") from None

        return asyncio.run(outside())


def local(command: Callable[Concatenate[Target, Given], None]) -> Callable[..., None]:
    """Give a command the option --workspace, which makes its target."""

    def options(context: typer.Context, workspace: _Workspace = None) -> Target:
        return Target.of(context, workspace)

    return _with_target(command, options)


def local_or_service(command: Callable[Concatenate[Target, Given], None]) -> Callable[..., None]:
    """Give a command the options --workspace, --api and --token, which make its target."""

    def options(
        context: typer.Context,
        workspace: _Workspace = None,
        api: Annotated[
            str | None,
            typer.Option(metavar="URL", help="Address of a running cragside. Default: this process does the work."),
        ] = None,
        token: Annotated[
            str | None, typer.Option(metavar="TOKEN", help="Token for --api. Default: RAG_API_TOKEN.")
        ] = None,
    ) -> Target:
        return Target.of(context, workspace, api, token)

    return _with_target(command, options)


def _with_target(command: Callable[..., None], options: Callable[..., Target]) -> Callable[..., None]:
    """Replace the first parameter of a command by the options that make it. Typer reads them from the signature."""
    shared = inspect.signature(options).parameters

    @functools.wraps(command)
    def run(**given: Any) -> None:
        command(options(**{name: given.pop(name) for name in shared}), **given)

    _, *own = inspect.signature(command).parameters.values()
    parameters = [*own, *shared.values()]
    # All are passed by keyword. The order is that of the help.
    by_keyword = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    run.__signature__ = inspect.Signature(by_keyword)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run
