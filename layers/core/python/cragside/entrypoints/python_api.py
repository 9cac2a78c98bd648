"""The public Python API; docs/python.md describes it."""

import asyncio
import functools
import inspect
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, ParamSpec, TypeVar, get_args

from pydantic import ConfigDict, Field, validate_call
from pydantic import ValidationError as PydanticValidationError

from cragside.application.attempts import TaskOutcome
from cragside.application.contract import enhanced_request
from cragside.application.passages import Lookup
from cragside.bootstrap import Container
from cragside.composition.files import FoundFile, Refused, read_file, source_name
from cragside.domain.errors import ConfigurationError, ValidationError
from cragside.domain.evidence import Document
from cragside.domain.names import workspace_name
from cragside.domain.query import Ranking
from cragside.settings import load_settings

_MOST_PASSAGES = 100
_Figure = Annotated[float, Field(ge=0, le=1)]
_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def _checked(method: Callable[_Given, Awaitable[_Result]]) -> Callable[_Given, Awaitable[_Result]]:
    """Raise `ValidationError` for an argument of another type or outside its range."""
    call = validate_call(config=ConfigDict(strict=True, arbitrary_types_allowed=True))(method)
    names = tuple(inspect.signature(method).parameters)

    @functools.wraps(method)
    async def checked(*given: _Given.args, **named: _Given.kwargs) -> _Result:
        try:
            return await call(*given, **named)
        except PydanticValidationError as error:
            found = error.errors(include_input=False, include_url=False)
            place = found[0]["loc"][0]
            name = names[place] if isinstance(place, int) and place < len(names) else str(place)
            # A union has an error for each of its members.
            reasons = " or ".join(each["msg"] for each in found if each["loc"][0] == place)
            raise ValidationError(f"{name}: {reasons}.", field=name) from None

    return checked


class Cragside:
    """cragside inside a Python program. Use it as an async context manager, or call `close`.

    `settings` holds the variables of docs/configuration.md; the default is the environment. Failures raise
    `CragsideError`, and so do arguments of another type than the annotated one.
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        given = os.environ if settings is None else settings
        if not (isinstance(given, Mapping) and all(isinstance(name, str) for name in given)):
            raise ConfigurationError("Pass settings as a mapping by variable, for example {'RAG_HOME': 'folder'}.")
        self._settings = load_settings(given)
        self._opened: Container | None = Container(self._settings)

    async def __aenter__(self) -> "Cragside":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    @_checked
    async def enrich(self, request: str | Mapping[str, Any], *, workspace: str | None = None) -> dict[str, Any]:
        """Return the request with evidence, as `POST /v1/enrich` does. A string is a request with that `prompt`."""
        asked = {"prompt": request} if isinstance(request, str) else request
        return enhanced_request(await self._container.enricher.enrich(asked, workspace=self._name(workspace)))

    @_checked
    async def ingest(self, source: Path | str, *, text: str | None = None, workspace: str | None = None) -> str:
        """Store a document durably and return its id. A short one is searchable then, with the embedded model.

        A `Path` is a file and a string is the URL of a page. With `text`, `source` is the name of that text.
        """
        intake, name = self._container.intake, self._name(workspace)
        if text is not None:
            acceptance = await intake.written(text, name=str(source), workspace=name)
        elif isinstance(source, Path):
            file = FoundFile(source_name(source.name), source)
            content = await asyncio.to_thread(read_file, file, self._settings.max_file_bytes)
            if isinstance(content, Refused):
                raise ValidationError(f"{source} {content.reason}. Pass the path of a readable file.")
            acceptance = await intake.file(content, name=file.name, source=file.source, workspace=name)
        else:
            acceptance = await intake.page(source, workspace=name)
        return acceptance.record.id

    async def index(self) -> dict[str, int]:
        """Process queued tasks until none is left. Return how many ended with each outcome.

        It takes tasks as any worker does: long texts become searchable, and annotations and the graph follow.
        """
        tally = await self._container.worker().run(until_idle=True)
        return {outcome: tally[outcome] for outcome in get_args(TaskOutcome)}

    @_checked
    async def query(
        self,
        text: str,
        *,
        by: Ranking = "relevance",
        limit: Annotated[int, Field(ge=1, le=_MOST_PASSAGES)] | None = None,
        min_relevance: _Figure | None = None,
        min_similarity: _Figure | None = None,
        workspace: str | None = None,
    ) -> list[Document]:
        """Return passages with `relevance` and `similarity`, the most relevant first, as for a prompt with `/rag`.

        `by="similarity"` ranks by similarity and grades nothing, so passages have no `relevance`.
        """
        lookup = Lookup(text, limit, by, least_relevance=min_relevance, least_similarity=min_similarity, both=True)
        seconds = self._settings.timeout_seconds
        found = await self._container.passages.find(lookup, workspace=self._name(workspace), seconds=seconds)
        return [hit.evidence for hit in found.hits]

    async def close(self) -> None:
        """Close files and connections. Any later call but `close` raises `CragsideError`."""
        container, self._opened = self._opened, None
        if container is not None:
            await container.close()

    @property
    def _container(self) -> Container:
        if self._opened is None:
            raise ValidationError("This Cragside is closed. Make a new one.")
        return self._opened

    def _name(self, workspace: str | None) -> str:
        return workspace_name(workspace or self._settings.workspace)
