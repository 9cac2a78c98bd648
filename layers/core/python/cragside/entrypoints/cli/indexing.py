"""Indexing files at a terminal: what `ingest` and `bake` have in common."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cragside.adapters.documents.folders import FoundFile, Refused, find_files, read_file
from cragside.adapters.documents.kinds import SUPPORTED
from cragside.domain.document import SourceText
from cragside.domain.errors import ValidationError
from cragside.entrypoints.cli.session import Session
from cragside.entrypoints.cli.terminal import notices, output, printable

if TYPE_CHECKING:
    from cragside.bootstrap import Container
    from cragside.ports.document_loader import DocumentLoader
    from cragside.ports.rag_repository import Indexed, KnowledgeStatus
    from cragside.settings import Settings

Paths = Annotated[
    list[Path], typer.Argument(metavar="PATH...", exists=True, readable=False, help="Files and folders to index.")
]

_BATCH_FILES = 16
_BATCH_CHARACTERS = 1_000_000
_STATUSES = ("indexed", "updated", "unchanged", "failed", "skipped")


class Tally:
    """Tells what became of each file as it happens, and counts."""

    def __init__(self) -> None:
        self._console = output()
        self._counts = Counter[str]()

    @property
    def failed(self) -> bool:
        """Whether anything that was asked for could not be indexed."""
        return self._counts["failed"] > 0

    def add(self, name: str, status: str, remark: str) -> None:
        """Print a line for the file."""
        self._counts[status] += 1
        style = {"failed": "red", "skipped": "dim"}.get(status)
        note = f"  ({printable(remark)})" if remark else ""
        self._console.print(f"{status:<10}{printable(name)}{note}", style=style, soft_wrap=True)

    def __str__(self) -> str:
        return ", ".join(f"{self._counts[status]} {status}" for status in _STATUSES if self._counts[status])


def index_files(
    session: Session, settings: "Settings", paths: Sequence[Path]
) -> "tuple[Tally, KnowledgeStatus | None]":
    """Index what is found into the settings' workspace; the container is closed when this returns.

    The status is None when no file could be read, in which case nothing was opened. Raises `ValidationError` when there
    is nothing to index.
    """
    tally, files = Tally(), list[FoundFile]()
    for item in find_files(paths):
        if isinstance(item, FoundFile):
            files.append(item)
        else:
            tally.add(item.name, "skipped" if item.skipped else "failed", item.reason)
    if not files and not tally.failed:
        raise ValidationError(f"There is no file to index; supported are {SUPPORTED}.")

    async def work(container: "Container") -> "KnowledgeStatus":
        repository = await container.workspaces.repository(settings.workspace)
        async for texts, refused in _progressing(files, container.loader, settings.max_file_bytes):
            for item in refused:
                tally.add(item.name, "failed", item.reason)
            for result in await repository.save_documents(texts) if texts else []:
                tally.add(result.name, result.status, _remark(result))
        return await repository.status()

    return tally, session.run(settings, work) if files else None


Batch = tuple[Sequence[SourceText], Sequence[Refused]]


async def _progressing(files: Sequence[FoundFile], loader: "DocumentLoader", max_bytes: int) -> AsyncIterator[Batch]:
    """The batches, with a progress bar on standard error that moves when a batch has been dealt with."""
    from rich.progress import Progress

    console = notices()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("Indexing", total=len(files))
        async for batch in _batches(files, loader, max_bytes):
            yield batch
            progress.advance(task, len(batch[0]) + len(batch[1]))


async def _batches(files: Sequence[FoundFile], loader: "DocumentLoader", max_bytes: int) -> AsyncIterator[Batch]:
    texts: list[SourceText] = []
    refused: list[Refused] = []
    for file in files:
        read = await _read(file, loader, max_bytes)
        if isinstance(read, Refused):
            refused.append(read)
        else:
            texts.append(read)
        if len(texts) >= _BATCH_FILES or sum(len(text.text) for text in texts) >= _BATCH_CHARACTERS:
            yield texts, refused
            texts, refused = [], []
    if texts or refused:
        yield texts, refused


async def _read(file: FoundFile, loader: "DocumentLoader", max_bytes: int) -> SourceText | Refused:
    content = read_file(file, max_bytes)
    if isinstance(content, Refused):
        return content
    try:
        return await loader.load(content, name=file.name)
    except ValidationError as error:
        return Refused(file.name, error.details.get("reason", error.message))


def _remark(result: "Indexed") -> str:
    if result.reason or not result.passages:
        return result.reason
    return f"{result.passages} passage" + ("" if result.passages == 1 else "s")
