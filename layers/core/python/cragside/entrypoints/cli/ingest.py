"""`cragside ingest`: texts into the knowledge base."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cragside.adapters.documents.text_files import FoundFile, Refused, find_texts, read_text
from cragside.domain.document import SourceText
from cragside.domain.errors import ValidationError
from cragside.entrypoints.cli import exits
from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.terminal import notices, output, printable

if TYPE_CHECKING:
    from rich.console import Console

    from cragside.bootstrap import Container
    from cragside.ports.rag_repository import Indexed

_BATCH_FILES = 16
_BATCH_CHARACTERS = 1_000_000
_STATUSES = ("indexed", "updated", "unchanged", "failed", "skipped")


def ingest(
    context: typer.Context,
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", exists=True, readable=False, help="Files and folders to index.")
    ],
    workspace: Annotated[
        str | None, typer.Option("--workspace", "-w", metavar="NAME", help="Where to. Default: RAG_WORKSPACE.")
    ] = None,
) -> None:
    """Index text files (.md, .txt) and folders of them.

    A file's name, relative to the folder that was given, identifies it in its workspace: the same name with the same
    content is left alone, with other content it is replaced. Files may be UTF-8, UTF-16 or Latin-1 and have at most
    50 MB. Hidden files are passed over, links that lead out of a given folder are refused.
    """
    session = session_of(context)
    settings = session.settings(workspace)
    found = list(find_texts(paths))
    files = [item for item in found if isinstance(item, FoundFile)]
    console, counts = output(), Counter[str]()
    for item in found:
        if isinstance(item, Refused):
            _report(console, counts, item.name, "skipped" if item.skipped else "failed", item.reason)
    if not files and not counts["failed"]:
        raise ValidationError("There is no .md or .txt file to index.")

    async def work(container: "Container") -> None:
        repository = await container.workspaces.repository(settings.workspace)
        for texts, refused in _progressing(files):
            for item in refused:
                _report(console, counts, item.name, "failed", item.reason)
            for result in await repository.save_documents(texts) if texts else []:
                _report(console, counts, result.name, result.status, _remark(result))

    if files:
        session.run(settings, work)
    summary = ", ".join(f"{counts[status]} {status}" for status in _STATUSES if counts[status])
    console.print(f"{summary}. Workspace {settings.workspace} in {printable(str(settings.home))}", soft_wrap=True)
    if counts["failed"]:
        raise typer.Exit(exits.FAILED)


Batch = tuple[Sequence[SourceText], Sequence[Refused]]


def _progressing(files: Sequence[FoundFile]) -> Iterator[Batch]:
    """The batches, with a progress bar on standard error that moves when a batch has been dealt with."""
    from rich.progress import Progress

    console = notices()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("Indexing", total=len(files))
        for batch in _batches(files):
            yield batch
            progress.advance(task, len(batch[0]) + len(batch[1]))


def _batches(files: Sequence[FoundFile]) -> Iterator[Batch]:
    texts: list[SourceText] = []
    refused: list[Refused] = []
    for file in files:
        read = read_text(file)
        if isinstance(read, Refused):
            refused.append(read)
        else:
            texts.append(read)
        if len(texts) >= _BATCH_FILES or sum(len(text.text) for text in texts) >= _BATCH_CHARACTERS:
            yield texts, refused
            texts, refused = [], []
    if texts or refused:
        yield texts, refused


def _remark(result: "Indexed") -> str:
    if result.reason or not result.passages:
        return result.reason
    return f"{result.passages} passage" + ("" if result.passages == 1 else "s")


def _report(console: "Console", counts: Counter[str], name: str, status: str, remark: str) -> None:
    counts[status] += 1
    style = {"failed": "red", "skipped": "dim"}.get(status)
    note = f"  ({printable(remark)})" if remark else ""
    console.print(f"{status:<10}{printable(name)}{note}", style=style, soft_wrap=True)
