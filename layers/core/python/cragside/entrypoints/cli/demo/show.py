"""The demo's pages."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.box import ASCII, SIMPLE_HEAD
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from cragside.entrypoints.cli.demo.prompts import DemoPrompt
from cragside.entrypoints.cli.evidence_report import show_context
from cragside.entrypoints.cli.terminal import print_table, printable

if TYPE_CHECKING:
    from cragside.application.enricher import Enriched

_NEXT = """Try next:
  cragside ingest your-notes/        index your own files
  cragside enrich "/rag ..."         see what a prompt becomes
  cragside serve                     put it in front of Ollama: any client, same API
  SEARXNG_HOST=http://... cragside demo    let weak evidence fall back on the web"""

_LINE = 92
_BODY_LINES = 2
_ENTRY = re.compile(r"\[\d+\] ")
_OPENING = re.compile(r"<evidence-\w+>")
# What domain.neutral puts in the place of a control token's brackets and bars.
_DEFUSED = re.compile(r"‹[^‹›\n]*+›|⟦[^⟦⟧\n]*+⟧")


def show_outcome(console: Console, heading: str, asked: str, enriched: "Enriched") -> None:
    """One prompt: what was asked, what was found, what Ollama would get."""
    console.print()
    console.rule(heading, align="left", characters="-", style="bold")
    console.print(f"Prompt   {asked}", style="bold")
    if enriched.rag_context is None:
        console.print("Verdict  untouched: no command, so Ollama gets the request as it came")
        return
    show_context(console, enriched.rag_context)
    final = printable(enriched.request["prompt"])
    defused = _DEFUSED.findall(final)
    if defused:
        console.print(f"Defused  {len(defused)} control tokens inside the evidence: {' '.join(dict.fromkeys(defused))}")
    console.print(Panel(shortened(final), title="what Ollama would get, shortened", box=ASCII, title_align="left"))


def show_summary(console: Console, outcomes: Sequence[tuple[DemoPrompt, "Enriched"]]) -> None:
    """All prompts in one table, and what to do next."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("what it shows", overflow="fold")
    table.add_column("verdict")
    table.add_column("documents", justify="right")
    table.add_column("relevance", justify="right")
    table.add_column("ms", justify="right")
    for prompt, enriched in outcomes:
        context = enriched.rag_context
        if context is None:
            table.add_row(prompt.shows, "untouched", "", "", "")
            continue
        best = max((document.score or 0.0 for document in context.documents), default=None)
        score = "" if best is None else f"{best:.2f}"
        count = str(len(context.documents))
        table.add_row(prompt.shows, context.verdict, count, score, str(context.processing_time_ms))
    console.print()
    console.rule("Summary", align="left", characters="-", style="bold")
    print_table(console, table)
    console.print(f"\n{_NEXT}")


def shortened(prompt: str) -> str:
    """The prompt with the bodies of its evidence cut to their first lines, and to what was defused in them."""
    kept: list[str] = []
    inside, body, left_out, closing = False, 0, 0, ""
    for line in prompt.splitlines():
        inside = inside and line != closing
        entry = inside and _ENTRY.match(line) is not None
        body = 0 if entry or not inside else body + bool(line.strip())
        hostile = _DEFUSED.search(line) is not None
        if inside and not entry and not hostile and (body > _BODY_LINES or not line.strip()):
            left_out += len(line)
            continue
        if left_out:
            kept.append(f"    ... {left_out:,} more characters")
            left_out = 0
        kept.append(line if hostile or not inside else _cut(line))
        if not inside and _OPENING.fullmatch(line):
            inside, closing = True, f"</{line[1:]}"
    return "\n".join(kept)


def _cut(line: str) -> str:
    return line if len(line) <= _LINE else f"{line[:_LINE].rsplit(' ', 1)[0]} ..."
