"""`cragside sync`: the knowledge base as the folders are."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cragside.domain.errors import ValidationError
from cragside.entrypoints.cli import exits
from cragside.entrypoints.cli.api import Address, Token, WorkspaceName, named_workspace
from cragside.entrypoints.cli.earlier import earlier_body, known_by_name_alone, tell_earlier
from cragside.entrypoints.cli.indexing import Report, end, nothing_is_lost, where_of
from cragside.entrypoints.cli.ingest import NoEnrich, NoWait, Yes
from cragside.entrypoints.cli.places import Options, Place, at_place
from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.terminal import print_json

if TYPE_CHECKING:
    from cragside.entrypoints.cli.syncing import Comparison


def sync(
    context: typer.Context,
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="FOLDER...", file_okay=False, readable=False, help="Folders to follow."),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")] = False,
    watching: Annotated[bool, typer.Option("--watch", help="Go on: follow every change until Ctrl-C.")] = False,
    yes: Yes = False,
    no_enrich: NoEnrich = False,
    no_wait: NoWait = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document: what became of each, and counts.")
    ] = False,
    workspace: WorkspaceName = None,
    api: Address = None,
    token: Token = None,
) -> None:
    """Bring the knowledge base in line with folders: index what is new or changed, remove what is gone.

    Files are found as `cragside ingest` finds them, and known by their absolute paths. A file that was renamed or moved
    keeps its document, which is not indexed again. A file that cannot be read at the moment keeps its document, too.
    A file that was emptied counts as gone; with --watch it keeps its document, for an editor may be about to write it.
    A folder that is gone loses its documents with --yes alone. Documents from elsewhere are left alone.

    Before more than a tenth of a folder's documents is removed, and before all of them are, the command asks. Where it
    cannot ask, it ends with 2 and does nothing, unless --yes is given. With --watch such a removal is announced and not
    carried out; Ctrl-C ends the command with 0, or with 130 while something is being indexed.
    """
    from cragside.adapters.documents.loader import FileLoader
    from cragside.entrypoints.cli.plans import plan_body, show_plan
    from cragside.entrypoints.cli.syncing import Contents, agreed, carry_out, check_gone, compare, on_terminal
    from cragside.entrypoints.cli.watching import Watch

    if watching and (dry_run or as_json):
        raise ValidationError("--watch goes neither with --dry-run nor with --json.")
    session = session_of(context)
    settings = session.settings(workspace)
    options, most = Options(enrich=not no_enrich), settings.max_file_bytes
    report, compared, watches = Report(), list["Comparison"](), list[Watch]()

    async def work(place: Place) -> None:
        named = [*(["--workspace", workspace] if workspace else []), *(["--api", api] if api else [])]
        await check_gone(place, folders, yes=yes and not watching, command=["cragside", "sync", "--yes", *named])
        contents = Contents(FileLoader(max_bytes=most), most)
        try:
            # Where nobody can be asked, the watch itself does all but what needs consent.
            if not watching or yes or on_terminal():
                await once(place, contents)
            if watching:
                report.show()
                watches.append(Watch(place, folders, contents, options, wait=not no_wait))
                await watches[0].follow()
        finally:
            await contents.loader.close()

    async def once(place: Place, contents: Contents) -> None:
        found = await compare(place, folders, contents)
        compared.append(found)
        if dry_run:
            report.earlier = found.foresee(await known_by_name_alone(place))
            return
        if not agreed(found.losses, yes=yes):
            found.plan = found.plan.without_removals()
        await carry_out(place, found, options, report, max_bytes=most, wait=not no_wait)
        report.earlier = await known_by_name_alone(place)

    try:
        with nothing_is_lost(report, address=api):
            at_place(session, settings, work, address=api, token=token)
    except KeyboardInterrupt:
        if not watches:
            raise
        watches[0].end(address=api)
        return
    told = {"workspace": named_workspace(settings, api)}
    if dry_run and as_json:
        print_json({**told, **plan_body(compared[0]), **earlier_body(report.earlier or ())})
    elif dry_run:
        show_plan(compared[0])
        tell_earlier(report.earlier or ())
    if dry_run and compared[0].failing:
        raise typer.Exit(exits.FAILED)
    if not dry_run:
        end(report, where_of(settings, api), as_json=as_json, address=api, **told)
