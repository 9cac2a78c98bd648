"""`cragside copy`: copies workspaces from one place to another."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cragside.domain.errors import NotFound, ValidationError
from cragside.domain.faults import counted
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.api import LocalWorkspace
from cragside.entrypoints.cli.places import settings_of
from cragside.entrypoints.cli.session import place_of, session_of
from cragside.entrypoints.cli.syncing import on_terminal
from cragside.entrypoints.cli.terminal import output, print_json, printable, progress

if TYPE_CHECKING:
    from cragside.bootstrap import Container
    from cragside.composition.store_files import Copies
    from cragside.settings import Settings


@dataclass(frozen=True, slots=True)
class _Copy:
    """What was copied. `documents` counts documents and exchanges."""

    workspace: str
    documents: int


def copy(
    context: typer.Context,
    source: Annotated[
        str, typer.Option("--from", metavar="PLACE", help="Where the workspaces are. Default: what is configured.")
    ] = "",
    target: Annotated[
        str, typer.Option("--to", metavar="PLACE", help="Where the copies go. Default: what is configured.")
    ] = "",
    workspace: LocalWorkspace = None,
    everything: Annotated[bool, typer.Option("--all", help="Copy all workspaces.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace workspaces that are there already.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Replace without asking. Needed where there is no terminal.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")] = False,
) -> None:
    """Copy a workspace with its memory and settings between files and PostgreSQL, in either direction.

    A PLACE is a folder (a RAG_HOME or a baked store), a postgresql:// address, or the name of a variable that holds
    one, such as POSTGRES_URI. Others on this machine can see the arguments of a command, so keep addresses with
    passwords in a variable.

    Nothing is indexed again: texts, vectors, graph, ids and times are copied, so that answers and citations stay the
    same. The source may be in use, and is copied as it was at the start. The target changes when all of a workspace is
    copied; if the command is interrupted, the target stays as it was, and the command can be run again.
    """
    session = session_of(context)
    if workspace is not None and everything:
        raise ValidationError("Pass --workspace or --all, not both.")
    settings = session.settings(workspace)
    places = [settings_of(session, place, option) for place, option in ((source, "--from"), (target, "--to"))]
    if place_of(places[0]) == place_of(places[1]):
        raise ValidationError(f"--from and --to are the same place, {place_of(places[0])}. Name another one.")
    if _inside(places[1], places[0]):
        raise ValidationError(f"{place_of(places[1])} is a folder in the store that is copied. Name one beside it.")

    async def work(container: "Container") -> list[_Copy]:
        from cragside.bootstrap import Container
        from cragside.composition.store_files import Copies

        other = Container(places[1])
        try:
            copies = Copies(container, other)
            names = await copies.workspaces() if everything else [settings.workspace]
            if not names:
                raise NotFound(f"There are no workspaces in {place_of(places[0])}. Check --from.")
            await _check(copies, names, replace=replace, yes=yes)
            return [await _copied(copies, name, replace=replace, as_json=as_json) for name in names]
        finally:
            await other.close()

    done = session.run(places[0], work)
    if as_json:
        print_json([asdict(each) for each in done])
        return
    for each in done:
        output().print(f"copied    {each.workspace}: {counted(each.documents, 'text')}", soft_wrap=True)


def _inside(inner: "Settings", outer: "Settings") -> bool:
    """Whether a store in files would be in another's folder."""
    homes = [settings.home for settings in (inner, outer) if not settings.on_postgres]
    match homes:
        case [Path() as folder, Path() as around]:
            return around.resolve() in folder.resolve().parents
    return False


async def _check(copies: "Copies", names: list[str], *, replace: bool, yes: bool) -> None:
    """Find out before the first copy what is in the way of any."""
    there = [name for name in names if await copies.in_the_way(name)]
    if not there:
        return
    existing = (
        f"The target has {'these workspaces' if len(there) > 1 else 'this workspace'} already: {', '.join(there)}."
    )
    if not replace:
        raise ValidationError(f"{existing} Nothing was copied. Pass --replace to replace what is there.")
    if yes:
        return
    if not on_terminal():
        raise ValidationError(f"{existing} Nothing was copied. To replace what is there, pass --yes as well.")
    if not typer.confirm(printable(f"{existing} Replace for good?"), err=True):
        raise typer.Exit(exit_codes.FAILED)


async def _copied(copies: "Copies", name: str, *, replace: bool, as_json: bool) -> _Copy:
    with progress(as_json=as_json).status(f"Copying {name} ...") as shown:
        count = await copies.copy(
            name, replace=replace, progress=lambda done: shown.update(f"Copying {name}: {done} documents ...")
        )
    return _Copy(name, count)
