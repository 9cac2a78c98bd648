"""`cragside forget`: sources out of the knowledge base."""

from typing import TYPE_CHECKING, Annotated

import typer

from cragside.adapters.documents.folders import source_name, source_of
from cragside.domain.errors import NotFound, ValidationError
from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.terminal import output, printable

if TYPE_CHECKING:
    from cragside.bootstrap import Container


def forget(
    context: typer.Context,
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Documents: their names, paths, addresses or ids.")
    ],
    workspace: Annotated[
        str | None, typer.Option("--workspace", "-w", metavar="NAME", help="Where from. Default: RAG_WORKSPACE.")
    ] = None,
) -> None:
    """Remove documents and what only they contributed.

    A file is known by its path and by the name that `cragside ingest` showed; a name that several documents have is
    refused, and they are listed. The files themselves are left alone.
    """
    from cragside.application.references import documents_meant, unclear

    session = session_of(context)
    settings = session.settings(workspace)
    console, unknown, refused = output(), list[str](), list[ValidationError]()

    async def work(container: "Container") -> None:
        repository = await container.workspaces.repository(settings.workspace)
        library = await container.workspaces.library(settings.workspace)
        for given in dict.fromkeys(names):
            name = source_name(given)
            meant = await documents_meant(library, name, path=source_of(given))
            if len(meant) > 1:
                refused.append(unclear(name, meant))
                console.print(f"{'unclear':<10}{printable(name)}", soft_wrap=True)
            elif meant and await repository.delete_document(meant[0].source):
                console.print(f"{'forgotten':<10}{printable(meant[0].label)}", soft_wrap=True)
            else:
                unknown.append(name)
                console.print(f"{'unknown':<10}{printable(name)}", soft_wrap=True)

    session.run(settings, work)
    if refused:
        raise ValidationError(printable(" ".join(error.message for error in refused)))
    if unknown:
        raise NotFound(
            f"Workspace {settings.workspace} holds nothing named {', '.join(map(printable, unknown))}. Give the names "
            "that `cragside documents` shows, or another --workspace."
        )
