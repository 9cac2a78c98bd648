"""Gives commands their settings, container and event loop."""

import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import typer

from cragside.domain.errors import ConfigurationError, ValidationError
from cragside.domain.names import workspace_name

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from cragside.bootstrap import Container
    from cragside.entrypoints.setting_files import CompleteEnvironment
    from cragside.settings import Settings


Result = TypeVar("Result")
_PLACES = ("POSTGRES_URI", "NEO4J_URI", "QDRANT_URL", "REDIS_URI", "RAG_HOME", "RAG_HOME_SHA256", "RAG_GENERATIONS")
# They choose parts of the place that is configured.
_STORAGES = ("RAG_KV_STORAGE", "RAG_VECTOR_STORAGE", "RAG_GRAPH_STORAGE", "RAG_DOC_STATUS_STORAGE")


@dataclass
class Session:
    """Gives a command its environment, folder and container. Tests pass their own.

    With `complete`, the environment has all settings, and no files of settings are read.
    """

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    folder: Path = field(default_factory=Path)
    build: Callable[["Settings"], Any] | None = None
    debug: bool = False
    complete: bool = False
    _given: "CompleteEnvironment | None" = field(default=None, init=False)

    def given(self) -> "CompleteEnvironment":
        """Return the environment, completed from files of settings. Raises `ConfigurationError`."""
        if self._given is None:
            from cragside.entrypoints.setting_files import (  # pydantic costs half a second
                CompleteEnvironment,
                completed_environment,
            )

            whole = CompleteEnvironment(self.environment, {})
            self._given = whole if self.complete else completed_environment(self.environment, self.folder.absolute())
        return self._given

    def settings(self, workspace: str | None = None) -> "Settings":
        """Return the settings from the environment and from files, with this workspace.

        Raises `ConfigurationError`.
        """
        from cragside.composition.databases import check_addresses
        from cragside.settings import load_settings

        found = self.given()
        try:
            settings = load_settings(found.values)
            check_addresses(settings)
        except ConfigurationError as error:
            place = found.origins.get(str(error.details.get("variable")), "")
            if Path(place).is_absolute():
                error.at(place)
            raise
        return settings if workspace is None else settings.model_copy(update={"workspace": workspace_name(workspace)})

    def run(
        self,
        settings: "Settings",
        work: Callable[["Container"], Awaitable[Result]],
        *,
        loop_factory: "Callable[[], AbstractEventLoop] | None" = None,
        members: Mapping[str, Any] | None = None,
    ) -> Result:
        """Run `work` in a new event loop, and close the container in any case. `members` replace the container's."""

        async def session() -> Result:
            container = self.build(settings) if self.build else self._built(settings, members or {})
            try:
                return await work(container)
            finally:
                await container.close()

        import asyncio  # here, like all that --help and --version do without

        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(session())

    def _built(self, settings: "Settings", members: Mapping[str, Any]) -> "Container":
        # LightRAG prints a stack trace for each document that fails, which commands report in a line of their own.
        _quieten("lightrag", below=logging.WARNING if self.debug else logging.CRITICAL)
        _quieten("nano-vectordb", below=logging.WARNING)
        from cragside.bootstrap import Container  # pydantic, which --help does without

        return Container(settings, **members)


def session_of(context: typer.Context) -> Session:
    """Return the session of the command that runs."""
    return cast(Session, context.find_object(Session))


def place_of(settings: "Settings") -> str:
    """Return where the workspaces are: the path of a folder, or the address of a database or a bucket."""
    if settings.on_postgres:
        from cragside.composition.databases import postgres_place

        return postgres_place(settings)
    place = settings.store_place
    return str(place.absolute() if isinstance(place, Path) else place)


def _quieten(name: str, *, below: int) -> None:
    """Drop a logger's messages below a level. This is a filter, because LightRAG sets its level when imported."""
    logging.getLogger(name).addFilter(lambda record: record.levelno >= below)


def settings_of(session: "Session", place: str, option: str) -> "Settings":
    """Return the settings with another place for the workspaces.

    Raises `ConfigurationError` and `ValidationError`.
    """
    here = session.settings()
    if not place:
        return here
    there = _settings_of(session, place, option)
    # RAG_QUEUE_URL is the queue of the place that is configured. Another one has its own.
    return there if place_of(there) == place_of(here) else there.model_copy(update={"queue_url": None})


def _settings_of(session: "Session", place: str, option: str) -> "Settings":
    from cragside.settings import load_settings

    values = dict(session.given().values)
    if place.isidentifier() and place.isupper():
        named = place
        place = values.get(named) or session.environment.get(named, "")
        if not place:
            raise ValidationError(f"{option} names the variable {named}, which is not set. Set it, or name a folder.")
    if place.startswith(("postgresql://", "postgres://")):
        kept = {
            name: value for name, value in values.items() if name not in _STORAGES or not value.startswith("Sqlite")
        }
        kept.pop("RAG_GENERATIONS", None)
        return load_settings({**kept, "POSTGRES_URI": place})
    for name in (*_PLACES, *_STORAGES):
        values.pop(name, None)
    if "://" in place and not place.startswith("s3://"):
        raise ValidationError(f"{option} is no place: name a folder or a postgresql:// address.")
    pinned = session.given().values.get("RAG_HOME_SHA256")
    if place == session.given().values.get("RAG_HOME") and pinned:
        values["RAG_HOME_SHA256"] = pinned
    return load_settings({**values, "RAG_HOME": place})
