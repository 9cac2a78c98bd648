"""`cragside ingest`, `sync` and `index`: index files, pages, folders that change, and git repositories."""

import asyncio
import shlex
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from cragside.composition.files import Refused, root_of
from cragside.domain.document import DocType
from cragside.domain.errors import ValidationError
from cragside.domain.syncing import KnownDocument
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.offers import Offer, Options
from cragside.entrypoints.cli.report import FoundItem, Report
from cragside.entrypoints.cli.running import Run, find
from cragside.entrypoints.cli.target import Target, local_or_service
from cragside.entrypoints.cli.terminal import notices, on_terminal, print_json, printable, progress

if TYPE_CHECKING:
    from cragside.entrypoints.cli.planning import RunPlan
    from cragside.entrypoints.cli.service import Service
    from cragside.entrypoints.cli.watching import Watch
    from cragside.settings import Settings


# rag-stack's limits, as the checkout has them; they stand here because the checkout's libraries cost the help time.
_MAX_FILES = 4000
_MAX_BYTES = 500_000
_SHOWN = 20

NoEnrich = Annotated[
    bool,
    typer.Option("--no-enrich", help="Make texts searchable only: no keywords, no entities, no summary, no graph."),
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Take texts in and end. A worker goes on with them.")]
OptionalPaths = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PATH...", exists=True, readable=False, help="Files and folders to index."),
]
_AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document: what became of each, and counts.")]
_Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="Remove also more than a tenth of a folder's documents, without asking.")
]


@local_or_service
def ingest(
    target: Target,
    paths: OptionalPaths = None,
    files: Annotated[
        list[Path] | None,
        typer.Option("--file", metavar="F", exists=True, dir_okay=False, readable=False, help="A file, as an option."),
    ] = None,
    folders: Annotated[
        list[Path] | None,
        typer.Option("--dir", metavar="D", exists=True, file_okay=False, help="A folder, as an option."),
    ] = None,
    urls: Annotated[
        list[str] | None, typer.Option("--url", metavar="U", help="A public page or file to fetch, http or https.")
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove documents of the given folders whose files are gone; see sync.")
    ] = False,
    yes: _Yes = False,
    no_enrich: NoEnrich = False,
    no_wait: NoWait = False,
    as_json: _AsJson = False,
) -> None:
    """Index files, folders and web pages: PDF, Word, HTML, e-mail, Markdown, JSON, text and source code.

    A file is identified by its absolute path, a page by its address. Unchanged content is not indexed again; changed
    content replaces the document. A document's name is its path below the given folder, with more of the path where
    several documents share a name. A file may have 50 MB (RAG_MAX_FILE_BYTES). Hidden files are skipped. Links that
    lead out of a given folder are refused.

    Accepted documents are not lost when the command is interrupted or a model is down: `cragside worker`, or a running
    `cragside serve`, goes on with them.
    """
    given = [*(paths or []), *(files or []), *(folders or [])]
    if not given and not urls:
        raise ValidationError("Say what to index: cragside ingest PATH..., --file, --dir or --url.")
    pruned = [path for path in given if path.is_dir()] if prune else []
    if prune and not pruned:
        raise ValidationError("--prune needs a folder: it removes documents of files that are gone from it.")
    run = Run(target, Options(enrich=not no_enrich), wait=not no_wait, yes=yes, as_json=as_json)
    send_all(run, given, urls or [], pruned)
    run.end()


def send_all(run: Run, paths: Sequence[Path], urls: Sequence[str] = (), pruned: Sequence[Path] = ()) -> None:
    """Send files and pages, and remove the documents of `pruned` folders whose files are gone."""
    found = find(paths, urls, as_json=run.as_json)

    async def work(service: "Service") -> None:
        from cragside.composition.files import TextDigests
        from cragside.entrypoints.cli.planning import RunPlan, plan_pruning

        planned = RunPlan(found)
        if pruned:
            async with TextDigests(run.target.settings.max_file_bytes) as digests:
                planned = run.confirm(await plan_pruning(service, pruned, found, digests))
        await run.carry_out(service, planned)

    run.ask(work)


@local_or_service
def sync(
    target: Target,
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="FOLDER...", file_okay=False, readable=False, help="Folders to follow."),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")] = False,
    watching: Annotated[
        bool, typer.Option("--watch", help="Keep watching and sync every change, until Ctrl-C.")
    ] = False,
    yes: _Yes = False,
    no_enrich: NoEnrich = False,
    no_wait: NoWait = False,
    as_json: _AsJson = False,
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
    run = Run(target, Options(enrich=not no_enrich), wait=not no_wait, yes=yes, as_json=as_json)
    watch: Watch | None = None

    async def work(service: "Service") -> "RunPlan | None":
        from cragside.composition.files import text_digests
        from cragside.entrypoints.cli.planning import plan_sync
        from cragside.entrypoints.cli.watching import Watch

        nonlocal watch
        await _check_gone(run, service, folders, yes=yes and not watching)
        async with text_digests(target.settings) as digests:
            # Where nobody can be asked, the watch itself does all but what needs consent.
            if not watching or yes or on_terminal():
                with progress(as_json=as_json).status("Comparing files ...") as shown:

                    def tell(done: int, files: int) -> None:
                        shown.update(f"Comparing: {done} of {files} files ...")

                    planned = await plan_sync(service, folders, digests, tell=tell)
                if dry_run:
                    return planned
                await run.carry_out(service, run.confirm(planned))
            if watching:
                run.report.show()
                run.report = Report()
                watch = Watch(run, service, folders, digests)
                await watch.follow()
        return None

    try:
        planned = run.ask(work)
    except KeyboardInterrupt:
        if watch is None or watch.busy:
            raise
        return
    if planned is None:
        run.end()
    else:
        _show_plan(planned, target, as_json=as_json)


def _show_plan(planned: "RunPlan", target: Target, *, as_json: bool) -> None:
    """Show what a run without --dry-run would do. Ends the command with 1 when something would fail."""
    if as_json:
        print_json({"workspace": target.workspace, **planned.body()})
    else:
        planned.show()
    if planned.fails:
        raise typer.Exit(exit_codes.FAILED)


async def _check_gone(run: Run, service: "Service", folders: Sequence[Path], *, yes: bool) -> None:
    """Raise an error for a missing folder, unless it has documents and `yes` agrees to remove them.

    The error names the command that removes them.
    """
    from cragside.entrypoints.cli.planning import is_gone

    for folder in folders:
        if not await asyncio.to_thread(is_gone, folder):
            continue
        count = len(await service.below(root_of(folder)))
        if not count:
            raise typer.BadParameter(f"dir '{printable(str(folder))}' does not exist.", param_hint="'FOLDER...'")
        if not yes:
            lie = "1 document lies" if count == 1 else f"{count} documents lie"
            way = printable(shlex.join(["cragside", "sync", "--yes", *run.target.options, str(folder)]))
            raise ValidationError(
                f"dir '{printable(str(folder))}' does not exist, and {lie} below it. Nothing was done. "
                f"To remove {'it' if count == 1 else 'them'}, run: {way}"
            )


@dataclass
class Repository:
    """A repository, and the choice of its files. `folder` and `paths` are set once it is cloned."""

    source: str
    branch: str | None
    repo_id: str | None
    include: Sequence[str]
    exclude: Sequence[str]
    max_files: int
    max_bytes: int
    keep: bool
    folder: str = ""
    paths: frozenset[str] = field(default_factory=frozenset)

    async def offers(self, settings: "Settings") -> AsyncGenerator[FoundItem]:
        """Return its files. It is cloned when the first is asked for."""
        from cragside.composition.repositories import cloned, files_of, paths_of

        allow = (settings.fetch_allow or "").split(",")
        clone = cloned(self.source, branch=self.branch, repo_id=self.repo_id, allow=allow, keep=self.keep)
        async with clone as checkout:
            self.repo_id, self.folder, self.paths = checkout.repo_id, str(checkout.folder), await paths_of(checkout)
            files = files_of(
                checkout,
                include=self.include,
                exclude=self.exclude,
                max_files=self.max_files,
                max_bytes=self.max_bytes,
            )
            async for found in files:
                yield found if isinstance(found, Refused) else Offer(found.name, found.content, found.metadata)

    async def gone(self, service: "Service") -> list[KnownDocument]:
        """Return the documents whose files have left the repository."""
        return [
            KnownDocument(document.id, "", document.name, "")
            async for document in service.documents()
            if document.metadata.get("repoId") == self.repo_id and document.metadata.get("path") not in self.paths
        ]


@local_or_service
def index(
    target: Target,
    source: Annotated[
        str, typer.Option("--repo", metavar="URL|PATH", help="An https URL, or the path of a repository.")
    ],
    branch: Annotated[str | None, typer.Option(help="A branch or tag. Default: the repository's.")] = None,
    repo_id: Annotated[str | None, typer.Option(metavar="ID", help="What its files are filed under.")] = None,
    include: Annotated[
        list[str] | None, typer.Option(metavar="P", help="Only these: a pattern as in .gitignore.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="P", help="Not these: a pattern as in .gitignore.")
    ] = None,
    max_files: Annotated[int, typer.Option(min=1, max=200_000, help="Most files.")] = _MAX_FILES,
    max_bytes: Annotated[int, typer.Option(min=1, help="Skip longer files.")] = _MAX_BYTES,
    doc_type: Annotated[
        str | None, typer.Option(help=f"{', '.join(get_args(DocType))}. Default: what each file is.")
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove what was indexed from this repository and is no longer in it.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the clone, and say where it is.")] = False,
    no_enrich: NoEnrich = False,
    no_wait: NoWait = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document: what became of each file, and counts.")
    ] = False,
) -> None:
    """Index a git repository: its newest commit, without generated and vendored files.

    A file is named REPO_ID#PATH. A second run indexes only what has changed. The repository's id is its URL or
    path unless --repo-id says otherwise. Private repositories are cloned with credentials in the URL, which are not
    stored. The clone is made on this machine, also with --api, and nothing in it is run.
    """
    if doc_type is not None and doc_type not in get_args(DocType):
        raise ValidationError(f"--doc-type is one of {', '.join(get_args(DocType))}.")
    repository = Repository(source, branch, repo_id, include or [], exclude or [], max_files, max_bytes, keep)
    options = Options(enrich=not no_enrich, doc_type=cast(DocType | None, doc_type))
    run = Run(target, options, wait=not no_wait, as_json=as_json)

    async def work(service: "Service") -> list[str]:
        await run.send(service, repository.offers(target.settings))
        gone = await repository.gone(service)
        for document in gone if prune else ():
            await run.remove(service, document, "is no longer in the repository")
        return [document.name for document in gone]

    gone = run.ask(work)
    if keep:
        notices().print(f"The clone stays: {printable(repository.folder)}", soft_wrap=True)
    if gone and not prune and not as_json:
        _tell_gone(gone)
    run.end(f"\nDone. repoId={printable(str(repository.repo_id))}", repoId=repository.repo_id, gone=gone)


def _tell_gone(gone: Sequence[str]) -> None:
    console = notices()
    console.print("No longer in the repository, but still known (--prune, or cragside forget NAME, removes them):")
    for name in gone[:_SHOWN]:
        console.print(f"  {printable(name)}", soft_wrap=True)
    if len(gone) > _SHOWN:
        console.print(f"  and {len(gone) - _SHOWN} more")
