"""`cragside copy` and `cragside bake`: copy workspaces to another place, or into a read-only store."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cragside.domain.errors import ConfigurationError, NotFound, ValidationError
from cragside.domain.faults import counted
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.ingest import OptionalPaths, send_all
from cragside.entrypoints.cli.running import Run
from cragside.entrypoints.cli.session import place_of, settings_of
from cragside.entrypoints.cli.target import Target, local
from cragside.entrypoints.cli.terminal import agreed, json_option, output, print_json, printable, progress

if TYPE_CHECKING:
    from cragside.bootstrap import Container
    from cragside.composition.store_files import Copies
    from cragside.domain.knowledge import KnowledgeStatus
    from cragside.settings import Settings


@local
def copy(
    here: Target,
    source: Annotated[
        str, typer.Option("--from", metavar="PLACE", help="Where the workspaces are. Default: what is configured.")
    ] = "",
    target: Annotated[
        str, typer.Option("--to", metavar="PLACE", help="Where the copies go. Default: what is configured.")
    ] = "",
    everything: Annotated[bool, typer.Option("--all", help="Copy all workspaces.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace workspaces that are there already.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Replace without asking. Needed where there is no terminal.")
    ] = False,
    as_json: Annotated[bool, json_option("JSON")] = False,
) -> None:
    """Copy a workspace with its memory and settings between files and PostgreSQL, in either direction.

    A PLACE is a folder (a RAG_HOME or a baked store), a postgresql:// address, or the name of a variable that holds
    one, such as POSTGRES_URI. Others on this machine can see the arguments of a command, so keep addresses with
    passwords in a variable.

    Nothing is indexed again: texts, vectors, graph, ids and times are copied, so that answers and citations stay the
    same. The source may be in use, and is copied as it was at the start. The target changes when all of a workspace is
    copied; if the command is interrupted, the target stays as it was, and the command can be run again.
    """
    if here.given is not None and everything:
        raise ValidationError("Pass --workspace or --all, not both.")
    places = [settings_of(here.session, place, option) for place, option in ((source, "--from"), (target, "--to"))]
    if place_of(places[0]) == place_of(places[1]):
        raise ValidationError(f"--from and --to are the same place, {place_of(places[0])}. Name another one.")
    if _inside(places[1], places[0]):
        raise ValidationError(f"{place_of(places[1])} is a folder in the store that is copied. Name one beside it.")

    async def work(container: "Container") -> dict[str, int]:
        from cragside.bootstrap import Container
        from cragside.composition.store_files import Copies

        other = Container(places[1])
        try:
            copies = Copies(container, other)
            names = await copies.workspaces() if everything else [here.settings.workspace]
            if not names:
                raise NotFound(f"There are no workspaces in {place_of(places[0])}. Check --from.")
            await _check(copies, names, replace=replace, yes=yes)
            return {name: await _copy(copies, name, replace=replace, as_json=as_json) for name in names}
        finally:
            await other.close()

    done = here.session.run(places[0], work)
    if as_json:
        print_json([{"workspace": name, "documents": count} for name, count in done.items()])
        return
    for name, count in done.items():
        output().print(f"copied    {name}: {counted(count, 'text')}", soft_wrap=True)


def _inside(inner: "Settings", outer: "Settings") -> bool:
    """Tell if a store in files lies in the folder of another one."""
    homes = [settings.store_place for settings in (inner, outer) if not settings.on_postgres]
    match homes:
        case [Path() as folder, Path() as around]:
            return around.resolve() in folder.resolve().parents
    return False


async def _check(copies: "Copies", names: list[str], *, replace: bool, yes: bool) -> None:
    """Ask before the first copy if any of them replaces a workspace."""
    there = [name for name in names if await copies.in_the_way(name)]
    if not there:
        return
    existing = (
        f"The target has {'these workspaces' if len(there) > 1 else 'this workspace'} already: {', '.join(there)}."
    )
    if not replace:
        raise ValidationError(f"{existing} Nothing was copied. Pass --replace to replace what is there.")
    refusal = "Nothing was copied. To replace what is there, pass --yes as well."
    if not agreed(existing, "Replace for good?", refusal, yes=yes):
        raise typer.Exit(exit_codes.FAILED)


async def _copy(copies: "Copies", name: str, *, replace: bool, as_json: bool) -> int:
    with progress(as_json=as_json).status(f"Copying {name} ...") as shown:
        return await copies.copy(
            name, replace=replace, progress=lambda done: shown.update(f"Copying {name}: {done} documents ...")
        )


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
            count = here.session.run(settings_of(here.session, source, "--from"), partial(_copy_embedded, embedded))
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


async def _copy_embedded(target: "Settings", container: "Container") -> int:
    from cragside.bootstrap import Container
    from cragside.composition.store_files import Copies

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
