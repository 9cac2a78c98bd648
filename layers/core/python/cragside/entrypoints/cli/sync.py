"""`cragside sync`: keeps the knowledge base in line with folders."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cragside.domain.errors import ValidationError
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.api import Address, Token, WorkspaceName, ask, named_workspace
from cragside.entrypoints.cli.indexing import end, where_of
from cragside.entrypoints.cli.indexing_report import Report, nothing_is_lost
from cragside.entrypoints.cli.ingest import NoEnrich, NoWait, Yes
from cragside.entrypoints.cli.progress import Options
from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.terminal import print_json, progress

if TYPE_CHECKING:
    from cragside.composition.files import TextDigests
    from cragside.entrypoints.cli.comparing import Comparison
    from cragside.entrypoints.cli.service import Service
    from cragside.entrypoints.cli.watching import Watch
    from cragside.settings import Settings


def sync(
    context: typer.Context,
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="FOLDER...", file_okay=False, readable=False, help="Folders to follow."),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")] = False,
    watching: Annotated[
        bool, typer.Option("--watch", help="Keep watching and sync every change, until Ctrl-C.")
    ] = False,
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
    The documents of a missing folder are removed only with --yes. Documents from elsewhere stay.

    Before more than a tenth of a folder's documents is removed, and before all of them are, the command asks. Where it
    cannot ask, it ends with 2 and does nothing, unless --yes is given. With --watch such a removal is announced and not
    carried out; Ctrl-C ends the command with 0, or with 130 while something is being indexed.
    """
    if watching and (dry_run or as_json):
        raise ValidationError("--watch goes neither with --dry-run nor with --json.")
    session = session_of(context)
    settings = session.settings(workspace)
    named = [*(["--workspace", workspace] if workspace else []), *(["--api", api] if api else [])]
    run = _Run(
        folders,
        settings,
        Options(enrich=not no_enrich),
        dry_run=dry_run,
        watching=watching,
        yes=yes,
        wait=not no_wait,
        as_json=as_json,
        removing=["cragside", "sync", "--yes", *named],
    )
    try:
        with nothing_is_lost(run.report, address=api):
            ask(session, settings, run.work, address=api, token=token)
    except KeyboardInterrupt:
        if run.watch is None:
            raise
        run.watch.end(address=api)
        return
    fields = {"workspace": named_workspace(settings, api)}
    if dry_run:
        run.show_plan(as_json=as_json, fields=fields)
    else:
        end(run.report, where_of(settings, api), as_json=as_json, address=api, **fields)


@dataclass
class _Run:
    """One run of the command. `removing` is the command that removes the documents of a folder that is gone."""

    folders: Sequence[Path]
    settings: "Settings"
    options: Options
    dry_run: bool
    watching: bool
    yes: bool
    wait: bool
    as_json: bool
    removing: Sequence[str]
    report: Report = field(default_factory=Report)
    compared: "Comparison | None" = None
    watch: "Watch | None" = None

    async def work(self, service: "Service") -> None:
        """Compare the folders with the knowledge base, do what is asked, and with `watching` go on."""
        from cragside.composition.files import text_digests
        from cragside.entrypoints.cli.syncing import check_gone, on_terminal
        from cragside.entrypoints.cli.watching import Watch

        await check_gone(service, self.folders, yes=self.yes and not self.watching, command=self.removing)
        async with text_digests(self.settings) as digests:
            # Where nobody can be asked, the watch itself does all but what needs consent.
            if not self.watching or self.yes or on_terminal():
                await self._once(service, digests)
            if self.watching:
                self.report.show()
                self.watch = Watch(service, self.folders, digests, self.options, wait=self.wait)
                await self.watch.follow()

    def show_plan(self, *, as_json: bool, fields: Mapping[str, Any]) -> None:
        """Show what a run without --dry-run would do. Ends the command with 1 when something would fail."""
        from cragside.entrypoints.cli.sync_plan import plan_body, show_plan

        assert self.compared is not None  # noqa: S101 (`work` has run)
        if as_json:
            print_json({**fields, **plan_body(self.compared)})
        else:
            show_plan(self.compared)
        if self.compared.failing:
            raise typer.Exit(exit_codes.FAILED)

    async def _once(self, service: "Service", digests: "TextDigests") -> None:
        from cragside.entrypoints.cli.comparing import compare
        from cragside.entrypoints.cli.syncing import agreed, carry_out

        with progress(as_json=self.as_json).status("Comparing files ...") as shown:

            def tell(done: int, files: int) -> None:
                shown.update(f"Comparing: {done} of {files} files ...")

            found = self.compared = await compare(service, self.folders, digests, tell=tell)
        if self.dry_run:
            return
        if not agreed(found.losses, yes=self.yes):
            found.plan = found.plan.without_removals()
        await carry_out(
            service,
            found,
            self.options,
            self.report,
            max_bytes=self.settings.max_file_bytes,
            wait=self.wait,
            as_json=self.as_json,
        )
