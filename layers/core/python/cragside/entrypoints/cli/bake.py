"""`cragside bake`: makes a read-only store."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cragside.domain.errors import ConfigurationError, ValidationError
from cragside.domain.faults import counted
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.api import LocalWorkspace
from cragside.entrypoints.cli.indexing import OptionalPaths, Run, found_in, index_found
from cragside.entrypoints.cli.indexing_report import Report
from cragside.entrypoints.cli.places import settings_of
from cragside.entrypoints.cli.session import Session, session_of
from cragside.entrypoints.cli.terminal import output, printable

if TYPE_CHECKING:
    from cragside.bootstrap import Container
    from cragside.ports.workspaces import KnowledgeStatus
    from cragside.settings import Settings


def bake(
    context: typer.Context,
    paths: OptionalPaths = None,
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Output folder: new, empty, or a baked store.")
    ],
    source: Annotated[
        str, typer.Option("--from", metavar="PLACE", help="Bake what this place has indexed already, instead of PATHS.")
    ] = "",
    workspace: LocalWorkspace = None,
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

    session = session_of(context)
    settings = session.settings(workspace)
    if bool(paths) == bool(source):
        raise ValidationError("Name the files and folders to bake, or a place with --from.")
    console = output()
    with baking(settings, out) as (embedded, baked):
        if source:
            done = f"{counted(_copied(session, settings_of(session, source, '--from'), embedded), 'document')} copied"
        else:
            done = _indexed(session, embedded, paths or [])
        known = session.run(embedded, _status)
        manifest, sha256 = baked.publish(known)
    size = sum(file.bytes for file in manifest.files.values())
    console.print(
        f"{done}. Workspace {known.workspace} baked into {printable(str(out))}: "
        f"{counted(known.documents, 'document')}, {counted(known.passages, 'passage')}, "
        f"{size / 1024**2:.1f} MB in all.\n"
        f"SHA-256 of baked.json: {sha256}",
        soft_wrap=True,
    )


def _indexed(session: Session, settings: "Settings", paths: list[Path]) -> str:
    report = Report()
    index_found(session, settings, found_in(paths), Run(), report)
    report.show()
    if report.exit_code:
        output().print(f"{report}. Nothing was baked. Fix or leave out the failed files.")
        raise typer.Exit(exit_codes.FAILED)
    return str(report)


def _copied(session: Session, source: "Settings", target: "Settings") -> int:
    workspace = target.workspace

    async def work(container: "Container") -> int:
        from cragside.bootstrap import Container
        from cragside.composition.store_files import Copies

        there = Container(target)
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

    return session.run(source, work)


async def _status(container: "Container") -> "KnowledgeStatus":
    return await (await container.workspaces.open(container.settings.workspace)).passages.status()
