"""`cragside forget`: removes documents."""

from typing import TYPE_CHECKING, Annotated

import typer

from cragside.composition.files import source_name, source_of
from cragside.domain.errors import NotFound, ValidationError
from cragside.entrypoints.cli.api import LocalWorkspace
from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.terminal import output, printable

if TYPE_CHECKING:
    from cragside.bootstrap import Container


def forget(
    context: typer.Context,
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Documents: their names, paths, addresses or ids.")
    ],
    workspace: LocalWorkspace = None,
) -> None:
    """Remove documents, and what only they contributed to the graph.

    Name a file by its path, or as `cragside documents` shows it. If several documents share a name, they are listed and
    nothing is removed. The files themselves stay.
    """
    from cragside.application.intake import documents_meant, unclear

    session = session_of(context)
    settings = session.settings(workspace)
    console, unknown = output(), list[str]()

    async def work(container: "Container") -> None:
        library = (await container.workspaces.open(settings.workspace)).documents
        meant = {
            (name := source_name(given)): await documents_meant(library, name, path=source_of(given)) for given in names
        }
        refused = [unclear(name, documents) for name, documents in meant.items() if len(documents) > 1]
        if refused:
            for name in (name for name, documents in meant.items() if len(documents) > 1):
                console.print(f"{'unclear':<10}{printable(name)}", soft_wrap=True)
            reasons = " ".join(error.message for error in refused)
            raise ValidationError(printable(f"{reasons} Nothing was forgotten."))
        for name, documents in meant.items():
            if documents and await container.intake.delete(documents[0].id, workspace=settings.workspace):
                console.print(f"{'forgotten':<10}{printable(documents[0].label)}", soft_wrap=True)
            else:
                unknown.append(name)
                console.print(f"{'unknown':<10}{printable(name)}", soft_wrap=True)

    session.run(settings, work)
    if unknown:
        raise NotFound(
            f"Workspace {settings.workspace} holds nothing named {', '.join(map(printable, unknown))}. Give the names "
            "that `cragside documents` shows, or another --workspace."
        )
