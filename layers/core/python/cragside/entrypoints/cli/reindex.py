"""`cragside reindex`: rebuilds a workspace."""

from typing import TYPE_CHECKING

import typer

from cragside.domain.faults import counted
from cragside.entrypoints.cli.api import LocalWorkspace
from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.terminal import notices, output, printable

if TYPE_CHECKING:
    from cragside.bootstrap import Container


def reindex(
    context: typer.Context,
    workspace: LocalWorkspace = None,
) -> None:
    """Rebuild a workspace and its memory with another embedding model.

    The model is the one RAG_EMBEDDING_MODEL names, or what a new store would take. The old store stays in use until the
    new one is complete.
    """
    session = session_of(context)
    settings = session.settings(workspace)

    async def work(container: "Container") -> int:
        console = notices()
        with console.status("Indexing ...") as shown:
            return await container.workspaces.reindex(
                settings.workspace, lambda name: shown.update(f"Indexed {printable(name)} ...")
            )

    count = session.run(settings, work)
    output().print(f"Rebuilt workspace {settings.workspace}: {counted(count, 'text')}.")
