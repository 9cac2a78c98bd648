"""`cragside ingest`: texts into the knowledge base."""

from typing import Annotated

import typer

from cragside.entrypoints.cli import exits
from cragside.entrypoints.cli.indexing import Paths, index_files
from cragside.entrypoints.cli.session import place_of, session_of
from cragside.entrypoints.cli.terminal import output, printable


def ingest(
    context: typer.Context,
    paths: Paths,
    workspace: Annotated[
        str | None, typer.Option("--workspace", "-w", metavar="NAME", help="Where to. Default: RAG_WORKSPACE.")
    ] = None,
) -> None:
    """Index files and folders of them: PDF, Word, HTML, e-mail, Markdown, JSON, text and source code.

    A file's name, relative to the folder that was given, identifies it in its workspace: the same name with the same
    content is left alone, with other content it is replaced. Files may have at most 50 MB (RAG_MAX_FILE_BYTES). Hidden
    files are passed over, links that lead out of a given folder are refused.
    """
    session = session_of(context)
    settings = session.settings(workspace)
    tally, _ = index_files(session, settings, paths)
    output().print(f"{tally}. Workspace {settings.workspace} in {printable(place_of(settings))}", soft_wrap=True)
    if tally.failed:
        raise typer.Exit(exits.FAILED)
