"""Commands for whole workspaces: their size, their removal, their repair, and the tables of PostgreSQL."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cragside.domain.errors import ConfigurationError, CragsideError, NotFound, ServiceUnavailable
from cragside.domain.faults import counted
from cragside.domain.names import memory_of, owner_of
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.session import place_of, session_of
from cragside.entrypoints.cli.target import Target, local
from cragside.entrypoints.cli.terminal import agreed, json_option, notices, output, print_json, print_result, printable
from cragside.entrypoints.log import message_of

if TYPE_CHECKING:
    from cragside.bootstrap import Container
    from cragside.domain.knowledge import KnowledgeStatus

workspaces = typer.Typer(help="List and remove workspaces.", no_args_is_help=True)
_AsJson = Annotated[bool, json_option("JSON")]
_LABELS = {"lightrag_workspace": "in LightRAG", "waiting_changes": "changes waiting"}


@local
def status(target: Target, as_json: _AsJson = False) -> None:
    """Show the size of a workspace, its model and its folder."""

    async def work(container: "Container") -> "KnowledgeStatus":
        await container.workspaces.check(container.settings.workspace, whole=True)
        return await (await container.workspaces.open(container.settings.workspace)).passages.status()

    known = {**asdict(target.run(work)), "store": place_of(target.settings)}
    if not known["lightrag_workspace"]:
        del known["lightrag_workspace"]
    print_result(known, _show_status, as_json=as_json)


def _show_status(known: dict[str, Any]) -> None:
    console = output()
    waiting = known["by_status"].get("pending", 0)
    for name, value in known.items():
        if name == "by_status" or (name == "waiting_changes" and not value):
            continue
        note = f" ({counted(waiting, 'document')} waiting)" if name == "passages" and waiting else ""
        console.print(f"{_LABELS.get(name, name.replace('_', ' ')):<17}{printable(str(value))}{note}", soft_wrap=True)
    for name, count in sorted(known["by_status"].items()):
        console.print(f"  {name:<15}{count}")


@dataclass(frozen=True, slots=True)
class _Size:
    """The size of a workspace. `bytes` counts files or texts, and metadata, of documents and exchanges."""

    workspace: str
    documents: int = 0
    exchanges: int = 0
    bytes: int = 0
    error: str | None = None


@workspaces.command("list")
def list_workspaces(context: typer.Context, as_json: _AsJson = False) -> None:
    """List the workspaces of RAG_HOME with the number of their documents and exchanges, and their size."""
    session = session_of(context)
    sizes = session.run(session.settings(), _sizes)
    if as_json:
        print_json([asdict(size) for size in sizes])
    else:
        _show_sizes(sizes)
    if any(size.error for size in sizes):
        raise typer.Exit(exit_codes.UNAVAILABLE)


@workspaces.command("remove")
def remove_workspace(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The workspace to remove.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask. Needed where there is no terminal.")] = False,
    as_json: _AsJson = False,
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
        amount = f"{size.documents} documents and {size.exchanges} exchanges, {size.bytes / 1024**2:.1f} MB"
        found = f"Workspace {name} has {size.error or amount}."
        if not agreed(found, "Remove it for good?", "Nothing was removed. To remove it, pass --yes.", yes=yes):
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


def _show_sizes(sizes: list[_Size]) -> None:
    console = output()
    if not sizes:
        console.print("There are no workspaces yet. Index something with `cragside ingest`.")
        return
    width = max(len("workspace"), *(len(size.workspace) for size in sizes))
    console.print(f"{'workspace':<{width}}  documents  exchanges       size")
    total = _Size("total", *(sum(column) for column in zip(*map(_figures, sizes), strict=True)))
    for size in (*sizes, total):
        documents, exchanges, stored = _figures(size)
        amount = size.error or f"{documents:>9}  {exchanges:>9}  {stored / 1024**2:>6.1f} MB"
        console.print(printable(f"{size.workspace:<{width}}  {amount}"), soft_wrap=True)


def _figures(size: _Size) -> tuple[int, int, int]:
    return size.documents, size.exchanges, size.bytes


@local
def reindex(target: Target) -> None:
    """Rebuild a workspace and its memory with another embedding model.

    The model is the one RAG_EMBEDDING_MODEL names, or what a new store would take. The old store stays in use until the
    new one is complete.
    """
    count = target.run(lambda container: _rebuild(container, container.settings.workspace))
    output().print(f"Rebuilt workspace {target.settings.workspace}: {counted(count, 'text')}.")


async def _rebuild(container: "Container", name: str) -> int:
    with notices().status(f"Indexing {name} ...") as shown:
        return await container.workspaces.reindex(
            name, lambda source: shown.update(f"{name}: indexed {printable(source)} ...")
        )


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

    async def work(container: "Container") -> bool:
        names = [container.settings.workspace] if target.given else await container.workspaces.names()
        differ, failures = False, list[CragsideError]()
        for name in names:
            try:
                if not (found := await container.workspaces.disagreement(name)):
                    output().print(f"{name}: all databases agree with the documents")
                    continue
                differ = True
                output().print(f"{name}: {found}")
                if not check:
                    output().print(f"{name}: built anew from {counted(await _rebuild(container, name), 'text')}")
            except CragsideError as error:
                failures.append(error)
                notices().print(printable(f"{name}: {message_of(error)}"), soft_wrap=True)
        if failures:
            raise typer.Exit(exit_codes.exit_code_of(failures[0]))
        if not names:
            output().print("There are no workspaces")
        return differ

    if target.run(work) and check:
        output().print("Build these workspaces anew: run cragside repair")
        raise typer.Exit(exit_codes.FAILED)


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

    async def work(container: "Container") -> bool:
        from cragside.composition.databases import is_migrated
        from cragside.composition.databases import migrate as make_tables
        from cragside.composition.store_files import faults

        database = container.database
        assert database is not None  # noqa: S101 (the setting says so)
        embedder = await container.open_embedder(settings.embedding_model)
        if check:
            there = await is_migrated(database, embedder)
            output().print("All tables are there" if there else "Tables are missing: run cragside migrate")
            return there
        made = await make_tables(database, embedder, age=settings.graph_storage == "PGGraphStorage")
        for fault in await faults(container):
            notices().print(printable(fault), style="yellow", soft_wrap=True)
        output().print(f"{'Made the tables' if made else 'The tables are there'}: {database.address}")
        return True

    if not session.run(settings, work):
        raise typer.Exit(exit_codes.FAILED)
