"""`cragside workspaces`: lists and removes workspaces."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from cragside.domain.errors import NotFound, ServiceUnavailable, ValidationError
from cragside.domain.names import memory_of, owner_of
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.syncing import on_terminal
from cragside.entrypoints.cli.terminal import output, print_json, printable

if TYPE_CHECKING:
    from cragside.bootstrap import Container

workspaces = typer.Typer(help="List and remove workspaces.", no_args_is_help=True)


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


@workspaces.command("remove")
def remove_workspace(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The workspace to remove.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask. Needed where there is no terminal.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")] = False,
) -> None:
    """Remove a workspace: its documents, graph, memory, tasks, settings and last conversation. Files stay.

    A running service and its worker notice. The name can be used again at once.
    """
    session = session_of(context)
    settings = session.settings(name)
    name = settings.workspace

    async def work(container: "Container") -> _Size | None:
        if name not in [size.workspace for size in await _sizes(container)]:
            raise NotFound(f"There is no workspace {name}. `cragside workspaces list` shows those of RAG_HOME.")
        await (await container.workspaces.open(name)).documents.check_writable()
        size = await _size(container, name)
        if not _agreed(size, yes=yes):
            return None
        await _remove(container, name)
        return size

    size = session.run(settings, work)
    if as_json:
        print_json({"workspace": name, "removed": size is not None} | ({} if size is None else asdict(size)))
    else:
        output().print(f"{'kept' if size is None else 'removed':<10}{name}", soft_wrap=True)
    if size is None:
        raise typer.Exit(exit_codes.FAILED)


def _agreed(size: _Size, *, yes: bool) -> bool:
    if yes:
        return True
    amount = f"{size.documents} documents and {size.exchanges} exchanges, {size.bytes / 1024**2:.1f} MB"
    held = f"Workspace {size.workspace} has {size.error or amount}."
    if not on_terminal():
        raise ValidationError(printable(f"{held} Nothing was removed. To remove it, pass --yes."))
    return typer.confirm(printable(f"{held} Remove it for good?"), err=True)


async def _remove(container: "Container", name: str) -> None:
    # Tasks first: a worker does nothing for those that it has, and queues missing ones again if this is interrupted.
    for store in (memory_of(name), name):
        await container.queue.discard(workspace=store)
    if changes := await container.preference_store.changes(name):
        await container.preference_store.change(name, dict.fromkeys(changes))
    if container.conversations is not None:
        container.conversations.forget(name)
    await container.workspaces.remove(name)


async def _sizes(container: "Container") -> list[_Size]:
    names = dict.fromkeys(owner_of(name) for name in await container.workspaces.names())
    return [await _size(container, name) for name in names]


async def _size(container: "Container", name: str) -> _Size:
    try:
        documents = await container.workspaces.stored(name)
        exchanges = await container.workspaces.stored(memory_of(name))
    except ServiceUnavailable as error:
        return _Size(name, error=error.message_with_place)
    return _Size(name, documents.documents, exchanges.documents, documents.bytes + exchanges.bytes)


def _show(sizes: list[_Size]) -> None:
    console = output()
    if not sizes:
        console.print("There are no workspaces yet. Index something with `cragside ingest`.")
        return
    width = max(len("workspace"), *(len(size.workspace) for size in sizes))
    console.print(f"{'workspace':<{width}}  documents  exchanges       size")
    for size in sizes:
        amount = size.error or f"{size.documents:>9}  {size.exchanges:>9}  {size.bytes / 1024**2:>6.1f} MB"
        console.print(printable(f"{size.workspace:<{width}}  {amount}"), soft_wrap=True)
    documents, exchanges = sum(size.documents for size in sizes), sum(size.exchanges for size in sizes)
    total = sum(size.bytes for size in sizes) / 1024**2
    console.print(f"{'total':<{width}}  {documents:>9}  {exchanges:>9}  {total:>6.1f} MB")
