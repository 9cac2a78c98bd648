"""Prints evidence: of a prompt, of an answer, of an explanation, and of the demo's prompts."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.box import ASCII, SIMPLE_HEAD
from rich.console import Console
from rich.panel import Panel
from rich.table import Column, Table

from cragside.domain.evidence import Document, number_of
from cragside.domain.explanation import DROPPED, what_to_try
from cragside.domain.neutral import as_name
from cragside.domain.outcome import RagContext
from cragside.entrypoints.cli.terminal import output, print_prose, print_table, printable

if TYPE_CHECKING:
    from cragside.application.enricher import Enriched


_VERDICTS = {
    "local": "evidence from the knowledge base",
    "web": "too little in the knowledge base; the web was searched",
    "mixed": "evidence from the knowledge base and the web",
    "none": "no evidence",
}
_LONGEST_NAME = 300
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
    _show_degraded(console, context)


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
    _show_degraded(console, context)


def _show_degraded(console: Console, context: RagContext) -> None:
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
    """Return where a passage stands: its file or address, page and section."""
    metadata = document.metadata
    page = f"page {metadata['page']}" if metadata.get("page") else ""
    section = f"section {metadata['section']}" if metadata.get("section") else ""
    return ", ".join(_one_line(part) for part in (_origin(document), page, section) if part)


def _time(document: Document, context: RagContext) -> tuple[str, ...]:
    """Return the date of a passage if it is known, and the number of a later one that answers as well."""
    date, later = document.metadata.get("date"), number_of(document.metadata.get("earlierThan"), context.documents)
    return tuple(filter(None, (_one_line(str(date or "")), f"earlier than [{later}]" if later else "")))


def _is_weak(context: RagContext) -> bool:
    """Tell if all evidence is local and below the threshold, as where the web cannot be searched."""
    best = max((document.score or 0.0 for document in context.documents), default=None)
    local = context.mode == "corrective" and context.verdict == "local"
    return local and best is not None and best <= context.threshold


def _meaning(context: RagContext) -> str:
    if context.mode == "similarity" and context.documents:
        return "what a similarity search of the knowledge base found, ungraded"
    weak = f", none of it above {context.threshold:g}" if _is_weak(context) else ""
    return _VERDICTS[context.verdict] + weak


def _citations(context: RagContext) -> Table:
    figures = "relevance" if context.mode == "corrective" else "cosine"
    columns = (_right("#"), _right(figures), "source", _folded("title"), _folded("from"))
    table = Table(*columns, box=SIMPLE_HEAD, pad_edge=False)
    for number, document in enumerate(context.documents, start=1):
        figure, title = _figure(document, context), _one_line(document.title)
        origin = ", ".join((_origin(document), *_time(document, context)))
        table.add_row(str(number), figure, document.source, title, origin)
    return table


def _right(heading: str) -> Column:
    return Column(heading, justify="right")


def _folded(heading: str) -> Column:
    return Column(heading, overflow="fold")


def _figure(document: Document, context: RagContext) -> str:
    value = document.relevance if context.mode == "corrective" else document.similarity
    return "" if value is None else f"{value:.2f}"


def _origin(document: Document) -> str:
    return _one_line(str(document.url or document.metadata.get("filename") or document.id))


def _one_line(text: str) -> str:
    """Return a title or a place in one line, so that it cannot look like another entry of the list."""
    return as_name(printable(text), _LONGEST_NAME)


def _times(context: RagContext) -> str:
    steps = [f"{name} {milliseconds:.0f} ms" for name, milliseconds in context.timings_ms.items()]
    total = f"{context.processing_time_ms} ms"
    return f"{total} ({', '.join(steps)})" if steps else total


def show_explanation(explanation: dict[str, Any]) -> None:
    """Print the steps, the candidates with their reasons, and the prompt."""
    console = output()
    question = explanation["standalone_question"] or explanation["question"]
    print_prose(console, f"Question {_one_line(question)}")
    how = (
        f"with a threshold of {explanation['threshold']:g}"
        if explanation["mode"] == "corrective"
        else f"mode {explanation['mode']}"
    )
    console.print(f"Verdict  {explanation['verdict']}, {how}")
    for step in explanation["steps"]:
        facts = [f"{name} {value}" for name, value in step.items() if name not in ("name", "ms") and value is not None]
        line = ", ".join([f"{step['name']} {step['ms']:.1f} ms", *facts])
        print_prose(console, f"Step     {_one_line(line)}")
    for failed in explanation["degraded"]:
        print_prose(console, f"Degraded {failed['component']}: {_one_line(failed['reason'])}", style="yellow")
    for candidate in explanation["candidates"]:
        _show_candidate(candidate)
    if explanation["verdict"] == "none":
        advice = what_to_try(explanation["mode"], searched=explanation["search_performed"])
        print_prose(console, f"\n{advice}")
    console.print("\nThe prompt that a model would get:\n")
    print_prose(console, explanation["prompt"])


def _show_candidate(candidate: dict[str, Any]) -> None:
    console, reasons, strip = output(), candidate["reasons"], candidate["reasons"]["strip"]
    score = _score(candidate)
    fate = f"kept as [{candidate['number']}]" if candidate["kept"] else DROPPED[candidate["dropped"]]
    place = [candidate["url"] or candidate["filename"]]
    place += [f"{name} {candidate[name]}" for name in ("page", "section") if candidate[name]]
    where = ", ".join(str(part) for part in place if part)
    title = _one_line(candidate["title"] or candidate["id"])
    print_prose(console, f"\n{score}  {title} ({candidate['source']}: {_one_line(where)})", style="bold")
    needed = "" if candidate["needed"] is None else f"; it needed more than {candidate['needed']:g}"
    print_prose(console, f"      {fate}{needed}; graded by {reasons['grader'] or 'nobody'}")
    if (judged := reasons["judgement"]) is not None:
        remark = f"{judged['model']} says {judged['answers']:.2f}, where the grade was {judged['grade']:.2f}"
        print_prose(console, f"      {_one_line(remark)}")
    if reasons["words"]:
        print_prose(console, f"      words: {_one_line(', '.join(reasons['words']))}")
    for word in reasons["read"]:
        remark = f'read "{word["asked"]}" as "{word["read"]}"'
        print_prose(console, f"      {_one_line(remark)}")
    if strip is not None:
        print_prose(console, f"      best strip, {strip['score']:.2f}: {' '.join(printable(strip['text']).split())}")


def _score(candidate: dict[str, Any]) -> str:
    if candidate["score"] is not None:
        return f"{candidate['score']:.2f}"
    return "none" if candidate["similarity"] is None else f"cosine {candidate['similarity']:.2f}"


def show_outcome(console: Console, heading: str, asked: str, enriched: "Enriched") -> None:
    """Print a prompt, the evidence that was found, and the prompt that Ollama would get."""
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


def show_summary(console: Console, outcomes: Sequence[tuple[str, "Enriched"]]) -> None:
    """Print all prompts in one table, and what to do next."""
    columns = (_folded("what it shows"), "verdict", _right("documents"), _right("relevance"), _right("ms"))
    table = Table(*columns, box=SIMPLE_HEAD, pad_edge=False)
    for shows, enriched in outcomes:
        context = enriched.rag_context
        if context is None:
            table.add_row(shows, "untouched", "", "", "")
            continue
        best = max((document.score or 0.0 for document in context.documents), default=None)
        score = "" if best is None else f"{best:.2f}"
        count = str(len(context.documents))
        table.add_row(shows, context.verdict, count, score, str(context.processing_time_ms))
    console.print()
    console.rule("Summary", align="left", characters="-", style="bold")
    print_table(console, table)
    console.print(f"\n{_NEXT}")


def shortened(prompt: str) -> str:
    """Cut the evidence in a prompt to its first lines, and to lines in which a sign was made harmless."""
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
