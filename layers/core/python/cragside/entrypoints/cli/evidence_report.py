"""Prints the evidence that was found for a prompt."""

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from cragside.domain.document import Document, number_of
from cragside.domain.explanation import what_to_try
from cragside.domain.neutral import as_name
from cragside.domain.outcome import RagContext
from cragside.entrypoints.cli.terminal import print_table, printable
from cragside.entrypoints.cli.wrapping import print_prose

_VERDICTS = {
    "local": "evidence from the knowledge base",
    "web": "too little in the knowledge base; the web was searched",
    "mixed": "evidence from the knowledge base and the web",
    "none": "no evidence",
}
_LONGEST_NAME = 300
_STYLES = {"local": "green", "web": "cyan", "mixed": "cyan", "none": "yellow"}


def show_context(console: Console, context: RagContext) -> None:
    """Print the verdict, the citations, the time each step took and what did not work."""
    weak = ", weak" if _is_weak(context) else ""
    console.print(f"Verdict  {context.verdict}{weak}: {_meaning(context)}", style=_STYLES[context.verdict])
    if context.documents:
        print_table(console, _citations(context))
    else:
        _show_closest(console, context)
    console.print(f"Time     {_times(context)}")
    for degradation in context.degraded:
        console.print(f"Degraded {degradation.component}: {printable(degradation.reason)}", style="yellow")


def show_sources(console: Console, context: RagContext) -> None:
    """Print what the numbers in an answer stand for, and what did not work."""
    if context.documents:
        console.print("\nSources")
        for number, document in enumerate(context.documents, start=1):
            shown = ", ".join((_place(document), *_time(document, context)))
            print_prose(console, f"[{number}] {_one_line(document.title)} ({shown})")
    else:
        console.print("\nNo evidence was found: the model answered from what it knows.", style="yellow")
        _show_closest(console, context)
    for degradation in context.degraded:
        console.print(f"Degraded {degradation.component}: {printable(degradation.reason)}", style="yellow")


def _show_closest(console: Console, context: RagContext) -> None:
    """Print the nearest passages where none is evidence, and what to try."""
    if context.closest:
        console.print("Closest, may not answer:")
    for document in context.closest:
        title = _one_line(document.title or document.id)
        print_prose(console, f"  {_figure(document, context)}  {title} ({_place(document)})")
    print_prose(console, f"Try      {what_to_try(context.mode, searched=context.search_performed)}")


def _place(document: Document) -> str:
    """Where a passage stands: its file or address, page and section."""
    metadata = document.metadata
    page = f"page {metadata['page']}" if metadata.get("page") else ""
    section = f"section {metadata['section']}" if metadata.get("section") else ""
    return ", ".join(_one_line(part) for part in (_origin(document), page, section) if part)


def _time(document: Document, context: RagContext) -> tuple[str, ...]:
    """The date of a passage if it is known, and the number of a later one that answers as well."""
    date, later = document.metadata.get("date"), number_of(document.metadata.get("earlierThan"), context.documents)
    return tuple(filter(None, (_one_line(str(date or "")), f"earlier than [{later}]" if later else "")))


def _is_weak(context: RagContext) -> bool:
    """Tell if the evidence is local passages below the threshold, as where the web cannot be searched."""
    best = max((document.score or 0.0 for document in context.documents), default=None)
    local = context.mode == "corrective" and context.verdict == "local"
    return local and best is not None and best <= context.threshold


def _meaning(context: RagContext) -> str:
    if context.mode == "similarity" and context.documents:
        return "what a similarity search of the knowledge base found, ungraded"
    weak = f", none of it above {context.threshold:g}" if _is_weak(context) else ""
    return _VERDICTS[context.verdict] + weak


def _citations(context: RagContext) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("#", justify="right")
    table.add_column("relevance" if context.mode == "corrective" else "cosine", justify="right")
    table.add_column("source")
    table.add_column("title", overflow="fold")
    table.add_column("from", overflow="fold")
    for number, document in enumerate(context.documents, start=1):
        figure, title = _figure(document, context), _one_line(document.title)
        origin = ", ".join((_origin(document), *_time(document, context)))
        table.add_row(str(number), figure, document.source, title, origin)
    return table


def _figure(document: Document, context: RagContext) -> str:
    value = document.relevance if context.mode == "corrective" else document.similarity
    return "" if value is None else f"{value:.2f}"


def _origin(document: Document) -> str:
    return _one_line(str(document.url or document.metadata.get("filename") or document.id))


def _one_line(text: str) -> str:
    """A title or a place: it cannot look like another entry of the list."""
    return as_name(printable(text), _LONGEST_NAME)


def _times(context: RagContext) -> str:
    steps = [f"{name} {milliseconds:.0f} ms" for name, milliseconds in context.timings_ms.items()]
    total = f"{context.processing_time_ms} ms"
    return f"{total} ({', '.join(steps)})" if steps else total
