"""`cragside reindex`: a workspace built anew."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Protocol, cast

import typer

from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.terminal import notices, output, printable

if TYPE_CHECKING:
    from cragside.bootstrap import Container


class Reindexer(Protocol):
    """Workspaces whose texts can be read back."""

    async def reindex(self, workspace: str, progress: Callable[[str], None]) -> int:
        """Build the workspace anew and return the number of its texts; `progress` hears the name of each."""
        ...


def reindex(
    context: typer.Context,
    workspace: Annotated[
        str | None, typer.Option("--workspace", "-w", metavar="NAME", help="Default: RAG_WORKSPACE.")
    ] = None,
) -> None:
    """Build a workspace anew with another embedding model.

    The model is the one RAG_EMBEDDING_MODEL names, or what a new store would take. The old store stays in use until the
    new one is complete.
    """
    session = session_of(context)
    settings = session.settings(workspace)

    async def work(container: "Container") -> int:
        console = notices()
        with console.status("Indexing ...") as shown:
            reindexer = cast(Reindexer, container.workspaces)
            return await reindexer.reindex(
                settings.workspace, lambda name: shown.update(f"Indexed {printable(name)} ...")
            )

    count = session.run(settings, work)
    output().print(f"Workspace {settings.workspace} is built anew: {count} texts.")
