"""`cragside forget`: sources out of the knowledge base."""

from typing import TYPE_CHECKING, Annotated

import typer

from cragside.adapters.documents.folders import source_name
from cragside.domain.errors import NotFound
from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.terminal import output, printable

if TYPE_CHECKING:
    from cragside.bootstrap import Container


def forget(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Sources, named as `cragside ingest` did.")],
    workspace: Annotated[
        str | None, typer.Option("--workspace", "-w", metavar="NAME", help="Where from. Default: RAG_WORKSPACE.")
    ] = None,
) -> None:
    """Remove sources and what only they contributed.

    A file is known by the name that `cragside ingest` showed: relative to the folder that was given. The files
    themselves are left alone.
    """
    session = session_of(context)
    settings = session.settings(workspace)
    console, unknown = output(), list[str]()

    async def work(container: "Container") -> None:
        repository = await container.workspaces.repository(settings.workspace)
        for name in dict.fromkeys(map(source_name, names)):
            known = await repository.delete_document(name)
            if not known:
                unknown.append(name)
            console.print(f"{'forgotten' if known else 'unknown':<10}{printable(name)}", soft_wrap=True)

    session.run(settings, work)
    if unknown:
        raise NotFound(
            f"Workspace {settings.workspace} holds nothing named {', '.join(map(printable, unknown))}. Give the names "
            "that `cragside ingest` showed (relative to the folder it was given), or another --workspace."
        )
