"""`cragside demo`: see it work, on a corpus that comes with it."""

import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cragside.entrypoints.cli.demo.prompts import PROMPTS, DemoPrompt
from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.terminal import notices, output

if TYPE_CHECKING:
    from rich.console import Console

    from cragside.application.enricher import Enriched
    from cragside.bootstrap import Container
    from cragside.domain.document import SourceText

WORKSPACE = "demo"
_BATCH = 8


def demo(
    context: typer.Context,
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep", metavar="FOLDER", file_okay=False, help="Keep the demo's store in this folder. Default: drop it."
        ),
    ] = None,
) -> None:
    """See it work on a corpus that comes with it.

    Indexes some short texts and runs prompts that take every route: knowledge base, web, untouched, hostile.

    Your own knowledge base is left alone. With SEARXNG_HOST set, weak local evidence is replaced by the web's; with
    OLLAMA_BASE_URL set, Ollama's models do the grading.
    """
    session = session_of(context)
    settings = session.settings(WORKSPACE)
    folder = nullcontext(str(keep)) if keep else tempfile.TemporaryDirectory(prefix="cragside-demo-")
    with folder as home:
        session.run(settings.model_copy(update={"home": Path(home), "home_sha256": None}), _tour)
        if keep:
            again = f"RAG_HOME={keep} RAG_WORKSPACE={WORKSPACE} cragside status"
            output().print(f"The store stays: {again}", soft_wrap=True)


async def _tour(container: "Container") -> None:
    from cragside.entrypoints.cli.demo.show import show_outcome, show_summary

    console = output()
    await _index(container, console)
    await _load(container, console)
    outcomes: list[tuple[DemoPrompt, Enriched]] = []
    for number, prompt in enumerate(PROMPTS, start=1):
        text = f"{container.settings.command_prefix} {prompt.text}" if prompt.commanded else prompt.text
        enriched = await container.enricher.enrich({"prompt": text}, workspace=container.settings.workspace)
        outcomes.append((prompt, enriched))
        show_outcome(console, f"{number}. {prompt.shows}", text, enriched)
    show_summary(console, outcomes)


async def _index(container: "Container", console: "Console") -> None:
    from rich.progress import Progress

    from cragside.entrypoints.cli.demo.documents import corpus

    started = time.perf_counter()
    repository = (await container.workspaces.open(container.settings.workspace)).passages
    texts, progress_console = corpus(), notices()
    with Progress(console=progress_console, transient=True, disable=not progress_console.is_terminal) as progress:
        task = progress.add_task("Indexing the corpus", total=len(texts))
        for batch in _batches(texts, _BATCH):
            for indexed in await repository.save_documents(batch):
                if indexed.status == "failed":
                    console.print(f"{indexed.name} could not be indexed: {indexed.reason}", style="red")
            progress.advance(task, len(batch))
    known = await repository.status()
    console.print(
        f"Loaded LightRAG and indexed {known.documents} documents in {time.perf_counter() - started:.1f} s:\n"
        f"{known.passages} passages, {known.entities} entities, {known.relations} relations, "
        f"embedded by {known.embedding_model}.",
        soft_wrap=True,
    )


async def _load(container: "Container", console: "Console") -> None:
    """The first request of a process loads LangGraph; done apart, it does not blur the others' times."""
    started = time.perf_counter()
    request = {"prompt": f"{container.settings.command_prefix} Is anybody there?"}
    await container.enricher.enrich(request, workspace=container.settings.workspace)
    console.print(f"Loaded LangGraph with a first request in {time.perf_counter() - started:.1f} s.")


def _batches(items: Sequence["SourceText"], size: int) -> list[Sequence["SourceText"]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
