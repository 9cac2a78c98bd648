"""`cragside ingest`: indexes files, folders and pages."""

from pathlib import Path
from typing import Annotated

import typer

from cragside.domain.errors import ValidationError
from cragside.entrypoints.cli.api import Address, Token, WorkspaceName, named_workspace
from cragside.entrypoints.cli.indexing import Run, end, found_in, index_found, where_of
from cragside.entrypoints.cli.indexing_report import Report, nothing_is_lost
from cragside.entrypoints.cli.progress import Options
from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.syncing import pruning

NoEnrich = Annotated[
    bool,
    typer.Option("--no-enrich", help="Make texts searchable only: no keywords, no entities, no summary, no graph."),
]
Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="Remove also more than a tenth of a folder's documents, without asking.")
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Queue texts and end. A worker indexes them later.")]


def ingest(
    context: typer.Context,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH...", exists=True, readable=False, help="Files and folders to index."),
    ] = None,
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
    """Index files, folders and web pages: PDF, Word, HTML, e-mail, Markdown, JSON, text and source code.

    A file is identified by its absolute path, a page by its address. Unchanged content is not indexed again; changed
    content replaces the document. A document's name is its path below the given folder, with more of the path where
    several documents share a name. A file may have 50 MB (RAG_MAX_FILE_BYTES). Hidden files are skipped. Links that
    lead out of a given folder are refused.

    Accepted documents are not lost when the command is interrupted or a model is down: `cragside worker`, or a running
    `cragside serve`, goes on with them.
    """
    session = session_of(context)
    settings = session.settings(workspace)
    given = [*(paths or []), *(files or []), *(folders or [])]
    if not given and not urls:
        raise ValidationError("Say what to index: cragside ingest PATH..., --file, --dir or --url.")
    pruned = [path for path in given if path.is_dir()] if prune else []
    if prune and not pruned:
        raise ValidationError("--prune needs a folder: it removes documents of files that are gone from it.")
    removing = pruning(pruned, yes=yes, max_bytes=settings.max_file_bytes) if pruned else None
    options = Options(enrich=not no_enrich)
    run = Run(options, api, token, wait=not no_wait, prune=removing, as_json=as_json)
    report, found = Report(), found_in(given, urls or [], as_json=as_json)
    with nothing_is_lost(report, address=api):
        index_found(session, settings, found, run, report)
    fields = {"workspace": named_workspace(settings, api)}
    end(report, where_of(settings, api), as_json=as_json, address=api, **fields)
