"""`cragside enrich-docs`: annotates documents and extends the graph."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.api import Address, Token, WorkspaceName, ask
from cragside.entrypoints.cli.indexing import until_idle
from cragside.entrypoints.cli.indexing_report import tell_what_waits, tell_why_it_stopped
from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.terminal import output, print_json, printable

if TYPE_CHECKING:
    from cragside.entrypoints.cli.service import Service


def enrich_docs(
    context: typer.Context,
    force: Annotated[bool, typer.Option("--force", help="Repeat finished work, too.")] = False,
    stats_only: Annotated[bool, typer.Option("--stats-only", help="Only show the progress.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Wait until all is done. This is the default without --api.")
    ] = False,
    document: Annotated[
        str | None,
        typer.Option("--document", metavar="ID", help="Only this document; `cragside documents` lists the ids."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what GET /enrichment/stats answers in the end, and what was enqueued.")
    ] = False,
    workspace: WorkspaceName = None,
    api: Address = None,
    token: Token = None,
) -> None:
    """Annotate documents with keywords, entities, language and summaries, and extend the graph. Failed work is retried.

    This is rag-stack's `enrich`. `cragside enrich` is about prompts. Without --api this process does the work, or waits
    for the process that does it. With --stats-only --watch it only shows the progress.
    """
    session = session_of(context)
    settings = session.settings(workspace)
    stats: dict[str, Any] = {"enqueued": 0, "stopped": None}

    async def work(service: "Service") -> None:
        if not stats_only:
            stats["enqueued"] = await service.enqueue(document, force=force)
        if watch or not (api or stats_only):
            stats["stopped"] = await until_idle(service, look_on=stats_only, as_json=as_json) or None
        stats.update(await service.stats())

    try:
        ask(session, settings, work, address=api, token=token)
    except KeyboardInterrupt:
        if stats["enqueued"]:
            tell_what_waits(address=api)
        raise
    if as_json:
        print_json(stats)
    else:
        _show(stats, stats_only=stats_only)
    if stats["stopped"]:
        tell_why_it_stopped(stats["stopped"], address=api)
        raise typer.Exit(exit_codes.UNAVAILABLE)
    if stats["totals"]["failed"] and not stats_only:
        raise typer.Exit(exit_codes.FAILED)


def _show(stats: dict[str, Any], *, stats_only: bool) -> None:
    console = output()
    if not stats_only:
        console.print(f"{stats['enqueued']} tasks enqueued.")
    queue, totals = stats["queue"], stats["totals"]
    console.print(f"tasks     {queue['pending']} pending, {queue['processing']} processing, {queue['deadLetter']} dead")
    console.print(printable("passages  " + ", ".join(f"{count} {state}" for state, count in totals.items())))
