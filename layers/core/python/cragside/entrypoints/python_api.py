"""The public Python API; docs/python.md describes it."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from cragside.application.contract import enhanced_request
from cragside.application.passages import Lookup
from cragside.bootstrap import Container
from cragside.composition.local_files import FoundFile, Refused, read_file, source_name
from cragside.domain.document import Document
from cragside.domain.errors import ValidationError
from cragside.domain.search import Ranking
from cragside.domain.workspace_name import workspace_name
from cragside.settings import load_settings


class Cragside:
    """cragside inside a Python program. Use it as an async context manager, or call `close`.

    `settings` holds the variables of docs/configuration.md; the default is the environment. Failures raise
    `CragsideError`. Arguments of another type than the annotated one are not checked.
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self._settings = load_settings(os.environ if settings is None else settings)
        self._opened: Container | None = Container(self._settings)

    async def __aenter__(self) -> "Cragside":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def enrich(self, request: str | Mapping[str, Any], *, workspace: str | None = None) -> dict[str, Any]:
        """Return the request with evidence, as `POST /v1/enrich` does. A string is a request with that `prompt`."""
        asked = {"prompt": request} if isinstance(request, str) else request
        return enhanced_request(await self._container.enricher.enrich(asked, workspace=self._name(workspace)))

    async def ingest(self, source: Path | str, *, text: str | None = None, workspace: str | None = None) -> str:
        """Store a document durably, queue its indexing and return its id.

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

        With `RAG_QUEUE_URL` this takes tasks from the SQS queue, as any worker of that queue does.
        """
        return dict(await self._container.worker().run(until_idle=True))

    async def query(
        self,
        text: str,
        *,
        by: Ranking = "relevance",
        limit: int | None = None,
        min_relevance: float | None = None,
        min_similarity: float | None = None,
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
