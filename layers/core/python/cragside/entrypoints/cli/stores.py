"""`cragside status`: shows the size of a workspace."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from cragside.domain.counted import counted
from cragside.domain.errors import ConfigurationError, CragsideError, NotFound, ServiceUnavailable, ValidationError
from cragside.domain.memory_name import memory_of, owner_of
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.exit_codes import exit_code_of
from cragside.entrypoints.cli.running import on_terminal
from cragside.entrypoints.cli.session import place_of, session_of
from cragside.entrypoints.cli.target import Target, local
from cragside.entrypoints.cli.terminal import notices, output, print_json, printable
from cragside.entrypoints.error_lines import message_of

if TYPE_CHECKING:
    from cragside.bootstrap import Container
    from cragside.ports.rag_repository import KnowledgeStatus


_LABELS = {"lightrag_workspace": "in LightRAG", "waiting_changes": "changes waiting"}


@local
def status(
    target: Target,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")] = False,
) -> None:
    """Show the size of a workspace, its model and its folder."""

    async def work(container: "Container") -> "KnowledgeStatus":
        await container.workspaces.check(container.settings.workspace, whole=True)
        return await (await container.workspaces.open(container.settings.workspace)).passages.status()

    known = {**asdict(target.run(work)), "store": place_of(target.settings)}
    if not known["lightrag_workspace"]:
        del known["lightrag_workspace"]
    if as_json:
        print_json(known)
        return
    console = output()
    by_status = known.pop("by_status")
    if not known["waiting_changes"]:
        del known["waiting_changes"]
    waiting = by_status.get("pending", 0)
    for name, value in known.items():
        note = f" ({counted(waiting, 'document')} waiting)" if name == "passages" and waiting else ""
        console.print(f"{_LABELS.get(name, name.replace('_', ' ')):<17}{printable(str(value))}{note}", soft_wrap=True)
    for name, count in sorted(by_status.items()):
        console.print(f"  {name:<15}{count}")


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


@local
def reindex(
    target: Target,
) -> None:
    """Rebuild a workspace and its memory with another embedding model.

    The model is the one RAG_EMBEDDING_MODEL names, or what a new store would take. The old store stays in use until the
    new one is complete.
    """

    async def work(container: "Container") -> int:
        console = notices()
        with console.status("Indexing ...") as shown:
            return await container.workspaces.reindex(
                container.settings.workspace, lambda name: shown.update(f"Indexed {printable(name)} ...")
            )

    count = target.run(work)
    output().print(f"Rebuilt workspace {target.settings.workspace}: {counted(count, 'text')}.")


@local
def repair(
    target: Target,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; fail if a workspace needs repair.")] = False,
) -> None:
    """Find workspaces whose share in Neo4j, Qdrant or Redis is not what PostgreSQL says, and build them anew.

    That happens when one of the databases was restored from a backup or emptied. Without `--workspace` all workspaces
    are looked at. What models said of passages is used again. Each workspace stays as it is until the new one is
    complete. Servers and workers may run. One that fails keeps no other one from being repaired.
    """

    async def work(container: "Container") -> int:
        names = [container.settings.workspace] if target.given else await container.workspaces.names()
        wrong = 0

        async def look_at(name: str) -> None:
            nonlocal wrong
            if not (found := await container.workspaces.disagreement(name)):
                output().print(f"{name}: all databases agree with the documents")
                return
            wrong += 1
            output().print(f"{name}: {found}")
            if not check:
                output().print(f"{name}: built anew from {counted(await _rebuilt(container, name), 'text')}")

        failures: list[CragsideError] = []
        for name in names:
            try:
                await look_at(name)
            except CragsideError as error:
                failures.append(error)
                notices().print(printable(f"{name}: {message_of(error)}"), soft_wrap=True)
        if failures:
            raise typer.Exit(exit_code_of(failures[0]))
        if not names:
            output().print("There are no workspaces")
        return wrong

    if target.run(work) and check:
        output().print("Build these workspaces anew: run cragside repair")
        raise typer.Exit(exit_codes.FAILED)


async def _rebuilt(container: "Container", name: str) -> int:
    with notices().status(f"Indexing {name} ...") as shown:
        return await container.workspaces.reindex(
            name, lambda source: shown.update(f"{name}: indexed {printable(source)} ...")
        )


def migrate(
    context: typer.Context,
    check: Annotated[bool, typer.Option("--check", help="Make nothing; fail if tables are missing.")] = False,
) -> None:
    """Make the tables in the database of POSTGRES_URI that are not there yet.

    Its role needs the rights to make a schema, tables and the extension pgvector, for PGGraphStorage also AGE. Servers
    and workers need only to read and write. Run it before they start, and again after RAG_EMBEDDING_MODEL changes. It
    may run at any time. It also tells which of NEO4J_URI, QDRANT_URL and REDIS_URI cannot be used; that is no failure.
    """
    session = session_of(context)
    settings = session.settings()
    if not settings.on_postgres:
        raise ConfigurationError(
            "POSTGRES_URI is not set. The store in files needs no tables.", variable="POSTGRES_URI"
        )
    if not check:
        output().print(session.run(settings, _migrated))
    elif not session.run(settings, _is_migrated):
        output().print("Tables are missing: run cragside migrate")
        raise typer.Exit(exit_codes.FAILED)
    else:
        output().print("All tables are there")


async def _migrated(container: "Container") -> str:
    from cragside.composition.databases import migrate as make_tables
    from cragside.composition.outside import faults

    database = container.database
    assert database is not None  # noqa: S101 (the setting says so)
    settings = container.settings
    embedder = await container.open_embedder(settings.embedding_model)
    made = await make_tables(database, embedder, age=settings.graph_storage == "PGGraphStorage")
    for fault in await faults(container):
        notices().print(printable(fault), style="yellow", soft_wrap=True)
    return f"{'Made the tables' if made else 'The tables are there'}: {database.address}"


async def _is_migrated(container: "Container") -> bool:
    from cragside.composition.databases import is_migrated

    database = container.database
    assert database is not None  # noqa: S101 (the setting says so)
    return await is_migrated(database, await container.open_embedder(container.settings.embedding_model))
