"""`cragside workspaces`: shows which workspaces there are."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from cragside.domain.errors import ServiceUnavailable
from cragside.domain.memory_name import memory_of, owner_of
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.terminal import output, print_json, printable

if TYPE_CHECKING:
    from cragside.bootstrap import Container

workspaces = typer.Typer(help="Show which workspaces there are.", no_args_is_help=True)


@dataclass(frozen=True, slots=True)
class _Size:
    """What a workspace stores. `bytes` counts files or texts, and metadata, of documents and exchanges."""

    workspace: str
    documents: int = 0
    exchanges: int = 0
    bytes: int = 0
    error: str | None = None


@workspaces.command("list")
def list_workspaces(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")] = False,
) -> None:
    """List the workspaces of RAG_HOME with the number of their documents and exchanges, and their size."""
    session = session_of(context)
    sizes = session.run(session.settings(), _sizes)
    if as_json:
        print_json([asdict(size) for size in sizes])
    else:
        _show(sizes)
    if any(size.error for size in sizes):
        raise typer.Exit(exit_codes.UNAVAILABLE)


async def _sizes(container: "Container") -> list[_Size]:
    names = dict.fromkeys(owner_of(name) for name in await container.workspaces.names())
    return [await _size(container, name) for name in names]


async def _size(container: "Container", name: str) -> _Size:
    try:
        documents = await container.workspaces.stored(name)
        exchanges = await container.workspaces.stored(memory_of(name))
    except ServiceUnavailable as error:
        return _Size(name, error=error.told_to_operator)
    return _Size(name, documents.documents, exchanges.documents, documents.bytes + exchanges.bytes)


def _show(sizes: list[_Size]) -> None:
    console = output()
    if not sizes:
        console.print("There are no workspaces yet. Index something with `cragside ingest`.")
        return
    width = max(len("workspace"), *(len(size.workspace) for size in sizes))
    console.print(f"{'workspace':<{width}}  documents  exchanges       size")
    for size in sizes:
        told = size.error or f"{size.documents:>9}  {size.exchanges:>9}  {size.bytes / 1024**2:>6.1f} MB"
        console.print(printable(f"{size.workspace:<{width}}  {told}"), soft_wrap=True)
    documents, exchanges = sum(size.documents for size in sizes), sum(size.exchanges for size in sizes)
    total = sum(size.bytes for size in sizes) / 1024**2
    console.print(f"{'total':<{width}}  {documents:>9}  {exchanges:>9}  {total:>6.1f} MB")
