"""`cragside reindex`: rebuilds a workspace."""

from typing import TYPE_CHECKING

from cragside.domain.counted import counted
from cragside.entrypoints.cli.target import Target, local
from cragside.entrypoints.cli.terminal import notices, output, printable

if TYPE_CHECKING:
    from cragside.bootstrap import Container


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
