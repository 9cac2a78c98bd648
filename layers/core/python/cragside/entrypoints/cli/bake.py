"""`cragside bake`: makes a read-only store."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cragside.domain.counted import counted
from cragside.domain.errors import ConfigurationError, ValidationError
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.ingest import OptionalPaths, send_all
from cragside.entrypoints.cli.places import settings_of
from cragside.entrypoints.cli.running import Run
from cragside.entrypoints.cli.target import Target, local
from cragside.entrypoints.cli.terminal import output, printable

if TYPE_CHECKING:
    from cragside.bootstrap import Container
    from cragside.ports.rag_repository import KnowledgeStatus
    from cragside.settings import Settings


@local
def bake(
    here: Target,
    paths: OptionalPaths = None,
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Output folder: new, empty, or a baked store.")
    ],
    source: Annotated[
        str, typer.Option("--from", metavar="PLACE", help="Bake what this place has indexed already, instead of PATHS.")
    ] = "",
) -> None:
    """Make a read-only store from texts: for a Lambda layer, a bucket, an image.

    Files are found and named as by `cragside ingest`. The embedded models index them, whatever OLLAMA_BASE_URL says, so
    that RAG_HOME=DIR needs neither a model server nor write access. If DIR is a baked store, this workspace is replaced
    and its other workspaces stay. DIR stays as it was if the command is interrupted or a file cannot be indexed.

    With --from, the workspace of a folder or a PostgreSQL database is baked as it is, without its memory. A PLACE is
    what `cragside copy` takes. The embedded model must have indexed it.

    The printed SHA-256 pins the whole store: set RAG_HOME_SHA256 to it.
    """
    from cragside.composition.store_files import baking  # here: filelock and SQLite, which --help does without

    if bool(paths) == bool(source):
        raise ValidationError("Name the files and folders to bake, or a place with --from.")
    console = output()
    with baking(here.settings, out) as (embedded, baked):
        if source:
            count = here.session.run(settings_of(here.session, source, "--from"), partial(_copy, embedded))
            done = f"{counted(count, 'document')} copied"
        else:
            done = _indexed(Target(here.session, embedded), paths or [])
        known = here.session.run(embedded, _status)
        manifest, sha256 = baked.publish(known)
    size = sum(file.bytes for file in manifest.files.values())
    console.print(
        f"{done}. Workspace {known.workspace} baked into {printable(str(out))}: "
        f"{counted(known.documents, 'document')}, {counted(known.passages, 'passage')}, "
        f"{size / 1024**2:.1f} MB in all.\n"
        f"SHA-256 of baked.json: {sha256}",
        soft_wrap=True,
    )


def _indexed(store: Target, paths: list[Path]) -> str:
    run = Run(store, keeps=False)
    send_all(run, paths)
    run.report.show()
    if run.report.exit_code:
        output().print(f"{run.report}. Nothing was baked. Fix or leave out the failed files.")
        raise typer.Exit(exit_codes.FAILED)
    return str(run.report)


async def _copy(target: "Settings", container: "Container") -> int:
    from cragside.bootstrap import Container
    from cragside.composition.copies import Copies

    workspace, there = target.workspace, Container(target)
    try:
        count = await Copies(container, there).copy_documents(workspace)
        progress = await (await there.workspaces.open(workspace)).documents.progress()
    except ConfigurationError as error:
        raise ConfigurationError(
            f"A baked store needs the embedded model. {error.message_with_place} Nothing was baked."
        ) from error
    finally:
        await there.close()
    if progress.waiting or progress.underway:
        raise ValidationError(
            f"Workspace {workspace} has documents that are not indexed yet. Nothing was baked. Run "
            "`cragside worker --until-idle` there first."
        )
    return count


async def _status(container: "Container") -> "KnowledgeStatus":
    return await (await container.workspaces.open(container.settings.workspace)).passages.status()
