"""`cragside index`: indexes a git repository."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from cragside.composition.files import Refused
from cragside.domain.document import DocType
from cragside.domain.errors import ValidationError
from cragside.entrypoints.cli.api import Address, Token, WorkspaceName, ask, named_workspace
from cragside.entrypoints.cli.indexing import end, where_of
from cragside.entrypoints.cli.indexing import index as index_offers
from cragside.entrypoints.cli.indexing_report import Line, Report, nothing_is_lost
from cragside.entrypoints.cli.ingest import NoEnrich, NoWait
from cragside.entrypoints.cli.progress import Offer, Options
from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.terminal import notices, printable

if TYPE_CHECKING:
    from cragside.entrypoints.cli.service import Service
    from cragside.settings import Settings

# rag-stack's limits, as the checkout has them; they stand here because the checkout's libraries cost the help time.
_MAX_FILES = 4000
_MAX_BYTES = 500_000
_SHOWN = 20

Include = Annotated[
    list[str] | None, typer.Option("--include", metavar="P", help="Only these: a pattern as in .gitignore.")
]
Exclude = Annotated[
    list[str] | None, typer.Option("--exclude", metavar="P", help="Not these: a pattern as in .gitignore.")
]


@dataclass
class Repository:
    """A repository, and which of its files to index. `folder` and `paths` are set once it is cloned."""

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

    async def offers(self, settings: "Settings") -> AsyncGenerator[Offer | Refused]:
        """Its files, cloned when the first is asked for."""
        from cragside.composition.repositories import clone

        allow = (settings.fetch_allow or "").split(",")
        cloned = clone(self.source, branch=self.branch, repo_id=self.repo_id, allow=allow, keep=self.keep)
        async with cloned as repository:
            self.repo_id, self.folder = repository.checkout.repo_id, str(repository.checkout.folder)
            self.paths = await repository.paths()
            async for found in repository.files(
                include=self.include, exclude=self.exclude, max_files=self.max_files, max_bytes=self.max_bytes
            ):
                yield found if isinstance(found, Refused) else Offer(found.name, found.content, found.metadata)


def index(
    context: typer.Context,
    source: Annotated[
        str, typer.Option("--repo", metavar="URL|PATH", help="An https URL, or the path of a repository.")
    ],
    branch: Annotated[str | None, typer.Option("--branch", help="A branch or tag. Default: the repository's.")] = None,
    repo_id: Annotated[
        str | None, typer.Option("--repo-id", "--repoId", metavar="ID", help="What its files are filed under.")
    ] = None,
    include: Include = None,
    exclude: Exclude = None,
    max_files: Annotated[
        int, typer.Option("--max-files", "--maxFiles", min=1, max=200_000, help="Most files.")
    ] = _MAX_FILES,
    max_bytes: Annotated[int, typer.Option("--max-bytes", "--maxBytes", min=1, help="Skip longer files.")] = _MAX_BYTES,
    doc_type: Annotated[
        str | None, typer.Option("--doc-type", help=f"{', '.join(get_args(DocType))}. Default: what each file is.")
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
    workspace: WorkspaceName = None,
    api: Address = None,
    token: Token = None,
) -> None:
    """Index a git repository: its newest commit, without generated and vendored files.

    A file is named REPO_ID#PATH. A second run indexes only what has changed. The repository's id is its URL or
    path unless --repo-id says otherwise. Private repositories are cloned with credentials in the URL, which are not
    stored. The clone is made on this machine, also with --api, and nothing in it is run.
    """
    session = session_of(context)
    settings = session.settings(workspace)
    if doc_type is not None and doc_type not in get_args(DocType):
        raise ValidationError(f"--doc-type is one of {', '.join(get_args(DocType))}.")
    repository = Repository(source, branch, repo_id, include or [], exclude or [], max_files, max_bytes, keep)
    options = Options(enrich=not no_enrich, doc_type=cast(DocType | None, doc_type))
    report, gone = Report(), list[str]()

    async def work(service: "Service") -> None:
        await index_offers(service, repository.offers(settings), options, report, wait=not no_wait, as_json=as_json)
        gone.extend(await _vanished(service, repository, report, prune=prune))

    with nothing_is_lost(report, address=api):
        ask(session, settings, work, address=api, token=token)
    if keep:
        notices().print(f"The clone stays: {printable(repository.folder)}", soft_wrap=True)
    if gone and not prune and not as_json:
        _tell_vanished(gone)
    summary = f"{where_of(settings, api)}\nDone. repoId={printable(str(repository.repo_id))}"
    fields = {"workspace": named_workspace(settings, api), "repoId": repository.repo_id, "gone": gone}
    end(report, summary, as_json=as_json, address=api, **fields)


async def _vanished(service: "Service", repository: Repository, report: Report, *, prune: bool) -> list[str]:
    """The names of documents whose files left the repository. With `prune`, they are removed."""
    known = [
        document
        async for document in service.documents()
        if document.metadata.get("repoId") == repository.repo_id
        and document.metadata.get("path") not in repository.paths
    ]
    if prune:
        for document in known:
            await service.delete(document.id)
            report.add(Line(document.name, "removed", "is no longer in the repository", document.id))
    return [document.name for document in known]


def _tell_vanished(gone: Sequence[str]) -> None:
    console = notices()
    console.print("No longer in the repository, but still known (--prune, or cragside forget NAME, removes them):")
    for name in gone[:_SHOWN]:
        console.print(f"  {printable(name)}", soft_wrap=True)
    if len(gone) > _SHOWN:
        console.print(f"  and {len(gone) - _SHOWN} more")
