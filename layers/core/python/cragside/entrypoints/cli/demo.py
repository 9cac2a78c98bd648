"""`cragside demo`: runs a prompt for each route, on a corpus that comes with the package."""

import tempfile
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.terminal import notices, output
from cragside.entrypoints.samples.documents import QUESTIONS

if TYPE_CHECKING:
    from rich.console import Console

    from cragside.application.attempts import Handled
    from cragside.application.enricher import Enriched
    from cragside.bootstrap import Container


@dataclass(frozen=True, slots=True)
class DemoPrompt:
    """A prompt of the demo. One that is `commanded` gets the command prefix in front."""

    shows: str
    text: str
    commanded: bool = True


_MERCURY, _ARMSTRONG, _GERMAN = QUESTIONS

PROMPTS = (
    DemoPrompt("a local hit, told apart from its namesakes", _MERCURY),
    DemoPrompt("one answer from two documents", _ARMSTRONG),
    DemoPrompt("German", _GERMAN),
    DemoPrompt(
        "a question in two steps",
        "Whose lamps lit the house of the man who invented the hydraulic crane?",
    ),
    DemoPrompt("a question that the corpus cannot answer", "Who won the football World Cup in 2022?"),
    DemoPrompt("a plain prompt, which stays as it is", "Write a haiku about rain.", commanded=False),
    DemoPrompt("evidence with an injection attempt", "How do I read a tide table before crossing a causeway?"),
)


WORKSPACE = "demo"


def demo(
    context: typer.Context,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            file_okay=False,
            help="Keep the demo's store in this folder. Default: delete it.",
        ),
    ] = None,
) -> None:
    """Try cragside on a sample corpus.

    Indexes some short texts and runs prompts that take every route: knowledge base, web, untouched, hostile.

    Your own knowledge base stays as it is. With SEARXNG_HOST, the web replaces weak local evidence. With
    OLLAMA_BASE_URL, Ollama's models do the grading.
    """
    session = session_of(context)
    settings = session.settings(WORKSPACE)
    folder = nullcontext(str(keep)) if keep else tempfile.TemporaryDirectory(prefix="cragside-demo-")
    with folder as home:
        session.run(settings.in_files(Path(home)), _tour)
        if keep:
            again = f"RAG_HOME={keep} RAG_WORKSPACE={WORKSPACE} cragside status"
            output().print(f"The store stays: {again}", soft_wrap=True)


async def _tour(container: "Container") -> None:
    from cragside.entrypoints.cli.evidence_report import show_outcome, show_summary

    console = output()
    await _index(container, console)
    await _load(container, console)
    outcomes: list[tuple[str, Enriched]] = []
    for number, prompt in enumerate(PROMPTS, start=1):
        text = f"{container.settings.command_prefix} {prompt.text}" if prompt.commanded else prompt.text
        settings = container.settings
        enriched = await container.enricher.enrich(
            {"prompt": text}, workspace=settings.workspace, tell_none=settings.tell_none
        )
        outcomes.append((prompt.shows, enriched))
        show_outcome(console, f"{number}. {prompt.shows}", text, enriched)
    show_summary(console, outcomes)


async def _index(container: "Container", console: "Console") -> None:
    from rich.progress import Progress

    from cragside.entrypoints.samples.documents import corpus

    started = time.perf_counter()
    workspace, progress_console = container.settings.workspace, notices()
    with Progress(console=progress_console, transient=True, disable=not progress_console.is_terminal) as progress:
        accepted = [await container.intake.text(text, workspace=workspace) for text in corpus()]
        bar = progress.add_task("Indexing the corpus", total=sum(len(each.tasks) for each in accepted))

        def advance(handled: "Handled") -> None:
            progress.advance(bar)
            if handled.reason:
                console.print(f"{handled.task.document_id} could not be indexed: {handled.reason}", style="red")

        await container.worker().run(until_idle=True, sweep=False, progress=advance)
    known = await (await container.workspaces.open(workspace)).passages.status()
    console.print(
        f"Loaded LightRAG and indexed {known.documents} documents in {time.perf_counter() - started:.1f} s:\n"
        f"{known.passages} passages, {known.entities} entities, {known.relations} relations, "
        f"embedded by {known.embedding_model}.",
        soft_wrap=True,
    )


async def _load(container: "Container", console: "Console") -> None:
    """Load LangGraph with a request, so that no later request has its loading time."""
    started = time.perf_counter()
    request = {"prompt": f"{container.settings.command_prefix} Is anybody there?"}
    await container.enricher.enrich(request, workspace=container.settings.workspace)
    console.print(f"Loaded LangGraph with a first request in {time.perf_counter() - started:.1f} s.")
