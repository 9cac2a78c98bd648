"""Prints the evidence that was found for a prompt."""

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from cragside.domain.document import Document
from cragside.domain.neutral import as_name
from cragside.domain.outcome import RagContext
from cragside.entrypoints.cli.terminal import print_table, printable
from cragside.entrypoints.cli.wrapping import print_prose

_VERDICTS = {
    "local": "evidence from the knowledge base",
    "web": "too little in the knowledge base; the web was searched",
    "mixed": "evidence from the knowledge base and the web",
    "none": "no evidence; the question passes through without context",
}
_LONGEST_NAME = 300
_STYLES = {"local": "green", "web": "cyan", "mixed": "cyan", "none": "yellow"}


def show_context(console: Console, context: RagContext) -> None:
    """Print the verdict, the citations, the time each step took and what did not work."""
    console.print(f"Verdict  {context.verdict}: {_meaning(context)}", style=_STYLES[context.verdict])
    if context.documents:
        print_table(console, _citations(context))
    console.print(f"Time     {_times(context)}")
    for degradation in context.degraded:
        console.print(f"Degraded {degradation.component}: {printable(degradation.reason)}", style="yellow")


def show_sources(console: Console, context: RagContext) -> None:
    """Print what the numbers in an answer stand for, and what did not work."""
    if context.documents:
        console.print("\nSources")
        for number, document in enumerate(context.documents, start=1):
            print_prose(console, f"[{number}] {_one_line(document.title)} ({_place(document)})")
    else:
        console.print("\nNo evidence was found: the model answered from what it knows.", style="yellow")
    for degradation in context.degraded:
        console.print(f"Degraded {degradation.component}: {printable(degradation.reason)}", style="yellow")


def _place(document: Document) -> str:
    """Where a passage stands: its file or address, page and section."""
    metadata = document.metadata
    page = f"page {metadata['page']}" if metadata.get("page") else ""
    section = f"section {metadata['section']}" if metadata.get("section") else ""
    return ", ".join(_one_line(part) for part in (_origin(document), page, section) if part)


def _meaning(context: RagContext) -> str:
    best = max((document.score or 0.0 for document in context.documents), default=None)
    weak = context.mode == "corrective" and best is not None and best <= context.threshold
    if context.mode == "similarity" and context.documents:
        return "what a similarity search of the knowledge base found, ungraded"
    return _VERDICTS[context.verdict] + (f", none of it above {context.threshold:g}" if weak else "")


def _citations(context: RagContext) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("#", justify="right")
    figure = "relevance" if context.mode == "corrective" else "cosine"
    table.add_column(figure, justify="right")
    table.add_column("source")
    table.add_column("title", overflow="fold")
    table.add_column("from", overflow="fold")
    for number, document in enumerate(context.documents, start=1):
        value = document.relevance if context.mode == "corrective" else document.similarity
        table.add_row(
            str(number),
            "" if value is None else f"{value:.2f}",
            document.source,
            _one_line(document.title),
            _origin(document),
        )
    return table


def _origin(document: Document) -> str:
    return _one_line(str(document.url or document.metadata.get("filename") or document.id))


def _one_line(text: str) -> str:
    """A title or a place: it cannot look like another entry of the list."""
    return as_name(printable(text), _LONGEST_NAME)


def _times(context: RagContext) -> str:
    steps = [f"{name} {milliseconds:.0f} ms" for name, milliseconds in context.timings_ms.items()]
    total = f"{context.processing_time_ms} ms"
    return f"{total} ({', '.join(steps)})" if steps else total
