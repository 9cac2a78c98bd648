"""`cragside documents` and `cragside enrich-docs`: list documents, and annotate them."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cragside.domain.errors import NotFound, ValidationError
from cragside.domain.faults import counted
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.target import Target, local, local_or_service
from cragside.entrypoints.cli.terminal import json_option, output, print_json, print_result, printable

if TYPE_CHECKING:
    from cragside.bootstrap import Container
    from cragside.entrypoints.cli.service import Service


@local_or_service
def documents(
    target: Target,
    status: Annotated[str | None, typer.Option(help="pending, searchable, enriched or failed. Default: all.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Most documents.")] = 100,
    offset: Annotated[int, typer.Option(min=0, max=1_000_000_000, help="Skip this many.")] = 0,
    unread: Annotated[
        bool, typer.Option("--unread", help="Only documents of whose files something was not read.")
    ] = False,
    as_json: Annotated[bool, json_option("what GET /v1/documents answers")] = False,
) -> None:
    """List documents, latest first: status, id, passages and name, and what of a file was not read."""
    answer = target.read(lambda service: service.page(limit=limit, offset=offset, status=status, unread=unread or None))
    print_result(answer, _show, as_json=as_json)


def _show(answer: dict[str, Any]) -> None:
    console = output()
    for document in answer["documents"]:
        label = document["label"]
        remark = "; ".join(filter(None, (document["error"], document["unread"])))
        name = f"{label}  ({remark})" if remark else label
        line = f"{document['status']:<11}{document['id']}  {document['passages']:>5}  {name}"
        style = "red" if document["error"] else "yellow" if document["unread"] else None
        console.print(" ".join(printable(line).split("\n")), style=style, soft_wrap=True)
    shown, total = len(answer["documents"]), answer["total"]
    documents = counted(total, "document")
    console.print(f"{shown} of {documents}." if shown < total else f"{documents}.")


@local_or_service
def enrich_docs(
    target: Target,
    force: Annotated[bool, typer.Option("--force", help="Repeat finished work, too.")] = False,
    stats_only: Annotated[bool, typer.Option("--stats-only", help="Only show the progress.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Wait until all is done. This is the default without --api.")
    ] = False,
    document: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Only this document; `cragside documents` lists the ids."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what GET /enrichment/stats answers in the end, and what was enqueued.")
    ] = False,
) -> None:
    """Annotate documents with keywords, entities, language and summaries, and extend the graph. Failed work is retried.

    This is rag-stack's `enrich`. `cragside enrich` is about prompts. Without --api this process does the work, or waits
    for the process that does it. With --stats-only --watch it only shows the progress.
    """
    from cragside.entrypoints.cli.running import tell_what_waits, tell_why_it_stopped, until_idle

    stats: dict[str, Any] = {"enqueued": 0, "stopped": None}

    async def work(service: "Service") -> None:
        if not stats_only:
            stats["enqueued"] = await service.enqueue(document, force=force)
        if watch or not (target.address or stats_only):
            stats["stopped"] = await until_idle(service, look_on=stats_only, as_json=as_json) or None
        stats.update(await service.stats())

    try:
        target.ask(work)
    except KeyboardInterrupt:
        if stats["enqueued"]:
            tell_what_waits(0, target)
        raise
    if as_json:
        print_json(stats)
    else:
        _show_stats(stats, stats_only=stats_only)
    if stats["stopped"]:
        tell_why_it_stopped(stats["stopped"], target)
        raise typer.Exit(exit_codes.UNAVAILABLE)
    if stats["totals"]["failed"] and not stats_only:
        raise typer.Exit(exit_codes.FAILED)


def _show_stats(stats: dict[str, Any], *, stats_only: bool) -> None:
    console = output()
    if not stats_only:
        console.print(f"{stats['enqueued']} tasks enqueued.")
    queue, totals = stats["queue"], stats["totals"]
    console.print(f"tasks     {queue['pending']} pending, {queue['processing']} processing, {queue['deadLetter']} dead")
    console.print(printable("passages  " + ", ".join(f"{count} {state}" for state, count in totals.items())))


@local
def forget(
    target: Target,
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Documents: their names, paths, addresses or ids.")
    ],
) -> None:
    """Remove documents, and what only they contributed to the graph.

    Name a file by its path, or as `cragside documents` shows it. If several documents share a name, they are listed and
    nothing is removed. The files themselves stay.
    """
    from cragside.application.intake import documents_meant, unclear
    from cragside.composition.files import source_name, source_of

    console, unknown = output(), list[str]()

    async def work(container: "Container") -> None:
        library = (await container.workspaces.open(container.settings.workspace)).documents
        meant = {
            (name := source_name(given)): await documents_meant(library, name, path=source_of(given)) for given in names
        }
        refused = [unclear(name, documents) for name, documents in meant.items() if len(documents) > 1]
        if refused:
            for name in (name for name, documents in meant.items() if len(documents) > 1):
                console.print(f"{'unclear':<10}{printable(name)}", soft_wrap=True)
            reasons = " ".join(error.message for error in refused)
            raise ValidationError(printable(f"{reasons} Nothing was forgotten."))
        for name, documents in meant.items():
            if documents and await container.intake.delete(documents[0].id, workspace=container.settings.workspace):
                console.print(f"{'forgotten':<10}{printable(documents[0].label)}", soft_wrap=True)
            else:
                unknown.append(name)
                console.print(f"{'unknown':<10}{printable(name)}", soft_wrap=True)

    target.run(work)
    if unknown:
        raise NotFound(
            f"Workspace {target.settings.workspace} holds nothing named {', '.join(map(printable, unknown))}. "
            "Give the names that `cragside documents` shows, or another --workspace."
        )
