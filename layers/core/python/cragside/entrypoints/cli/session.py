"""One run of a command: its settings, its container, its event loop."""

import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import typer

from cragside.domain.workspace_name import workspace_name

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from cragside.bootstrap import Container
    from cragside.settings import Settings

Result = TypeVar("Result")


@dataclass
class Session:
    """What every command shares. Tests put their own environment and container in place."""

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    build: Callable[["Settings"], Any] | None = None
    debug: bool = False

    def settings(self, workspace: str | None = None) -> "Settings":
        """The environment's settings, with the workspace that was asked for. Raises `ConfigurationError`."""
        from cragside.settings import load_settings  # pydantic costs half a second

        settings = load_settings(self.environment)
        return settings if workspace is None else settings.model_copy(update={"workspace": workspace_name(workspace)})

    def run(
        self,
        settings: "Settings",
        work: Callable[["Container"], Awaitable[Result]],
        *,
        loop_factory: "Callable[[], AbstractEventLoop] | None" = None,
    ) -> Result:
        """What `work` returns, in an event loop of its own; the container is closed whatever happens."""

        async def session() -> Result:
            container = (self.build or self._built)(settings)
            try:
                return await work(container)
            finally:
                await container.close()

        import asyncio  # here, like all that --help and --version do without

        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(session())

    def _built(self, settings: "Settings") -> "Container":
        # LightRAG prints a stack trace for each document that fails, which commands report in a line of their own.
        _quieten("lightrag", below=logging.WARNING if self.debug else logging.CRITICAL)
        _quieten("nano-vectordb", below=logging.WARNING)
        from cragside.bootstrap import Container  # pydantic, which --help does without

        return Container(settings)


def session_of(context: typer.Context) -> Session:
    """The session of the command that runs."""
    return cast(Session, context.find_object(Session))


def place_of(settings: "Settings") -> str:
    """Where the workspaces are: a folder's absolute path, or a bucket's address."""
    return str(settings.home.absolute() if isinstance(settings.home, Path) else settings.home)


def _quieten(name: str, *, below: int) -> None:
    """Drop what this logger says below a level. A filter, since LightRAG sets its level when it is imported."""
    logging.getLogger(name).addFilter(lambda record: record.levelno >= below)
