"""`cragside bake`: makes a read-only store."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cragside.domain.counted import counted
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.api import LocalWorkspace
from cragside.entrypoints.cli.indexing import Paths, Run, found_in, index_found
from cragside.entrypoints.cli.indexing_report import Report
from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.terminal import output, printable

if TYPE_CHECKING:
    from cragside.bootstrap import Container
    from cragside.ports.rag_repository import KnowledgeStatus


def bake(
    context: typer.Context,
    paths: Paths,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Output folder: new, empty, or a baked store.")
    ],
    workspace: LocalWorkspace = None,
) -> None:
    """Make a read-only store from texts: for a Lambda layer, a bucket, an image.

    Files are found and named as by `cragside ingest`. The embedded models index them, whatever OLLAMA_BASE_URL says, so
    that RAG_HOME=DIR needs neither a model server nor write access. If DIR is a baked store, this workspace is replaced
    and its other workspaces stay. DIR stays as it was if the command is interrupted or a file cannot be indexed.

    The printed SHA-256 pins the whole store: set RAG_HOME_SHA256 to it.
    """
    from cragside.composition.store_files import baking  # here: filelock and SQLite, which --help does without

    session = session_of(context)
    settings = session.settings(workspace)
    console = output()
    with baking(settings, out) as (embedded, baked):
        report = Report()
        index_found(session, embedded, found_in(paths), Run(), report)
        report.show()
        if report.exit_code:
            console.print(f"{report}. Nothing was baked. Fix or leave out the failed files.")
            raise typer.Exit(exit_codes.FAILED)
        known = session.run(embedded, _status)
        manifest, sha256 = baked.publish(known)
    size = sum(file.bytes for file in manifest.files.values())
    console.print(
        f"{report}. Workspace {known.workspace} baked into {printable(str(out))}: "
        f"{counted(known.documents, 'document')}, {counted(known.passages, 'passage')}, "
        f"{size / 1024**2:.1f} MB in all.\n"
        f"SHA-256 of baked.json: {sha256}",
        soft_wrap=True,
    )


async def _status(container: "Container") -> "KnowledgeStatus":
    return await (await container.workspaces.open(container.settings.workspace)).passages.status()
