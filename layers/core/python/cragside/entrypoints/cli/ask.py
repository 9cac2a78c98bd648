"""`cragside ask`: an answer from your documents, with its sources."""

from typing import TYPE_CHECKING, Annotated

import typer

from cragside.domain.errors import ServiceUnavailable
from cragside.entrypoints.cli.target import Target, local
from cragside.entrypoints.cli.terminal import notices, output, print_json, printable
from cragside.entrypoints.cli.wrapping import WordWrap, print_prose

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cragside.application.answerer import Answer
    from cragside.bootstrap import Container
    from cragside.domain.outcome import RagContext


@local
def ask(
    target: Target,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What you want to know.")],
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", metavar="NAME", help="Ollama's model. Default: RAG_CHAT_MODEL, else one that Ollama has."
        ),
    ] = None,
    go_on: Annotated[bool, typer.Option("--continue", "-c", help="Go on with the last conversation.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document, and nothing else.")] = False,
) -> None:
    """Answer a question from your documents, with sources.

    Ollama's model writes the answer from graded evidence and cites it as [1], [2]. Without a model you see the
    evidence.
    Ollama is looked for at OLLAMA_BASE_URL, else at OLLAMA_HOST, else at http://127.0.0.1:11434.
    If the knowledge base cannot be read and there is no other evidence, the command ends with 3.
    """

    async def work(container: "Container") -> None:
        history = _history(container, container.settings.workspace) if go_on else []
        answer = await container.answerer.answer(
            question, history=history, model=model, workspace=container.settings.workspace
        )
        if as_json:
            text = await _collected(answer)
            print_json({"model": answer.model, "answer": text, "rag_context": answer.context.as_dict()})
        else:
            text = await _shown(answer)
        if container.conversations is not None:
            turns = [_message("user", question)]
            if text is not None:
                turns.append(_message("assistant", text))
            container.conversations.keep(container.settings.workspace, [*history, *turns])
        _refuse_blindness(answer.context)

    target.run(work)


def _refuse_blindness(context: "RagContext") -> None:
    """Raise `ServiceUnavailable` if there is no evidence because the knowledge base could not be read."""
    lost = {each.component: each.reason for each in context.degraded}
    if "knowledge_base" in lost and not context.documents:
        raise ServiceUnavailable("knowledge_base", lost["knowledge_base"])


def _history(container: "Container", workspace: str) -> list["Mapping[str, str]"]:
    from cragside.domain.errors import ValidationError

    if container.conversations is None:
        raise ValidationError("There is no conversation to continue: this store is read-only.")
    return container.conversations.last(workspace)


async def _collected(answer: "Answer") -> str | None:
    return "".join([piece async for piece in answer.pieces]) if answer.pieces is not None else None


async def _shown(answer: "Answer") -> str | None:
    from cragside.entrypoints.cli.evidence_report import show_sources

    if answer.pieces is None:
        _show_evidence(answer.context)
        _tell_why(answer.reason)
        return None
    console = output()
    written: list[str] = []
    wrap = WordWrap(console.width) if console.is_terminal else None
    async for piece in answer.pieces:
        written.append(piece)
        console.file.write(wrap.feed(printable(piece)) if wrap else printable(piece))
        console.file.flush()
    console.file.write(f"{wrap.end()}\n" if wrap else "\n")
    show_sources(console, answer.context)
    return "".join(written)


def _show_evidence(context: "RagContext") -> None:
    from cragside.entrypoints.cli.evidence_report import show_context

    console = output()
    show_context(console, context)
    for number, document in enumerate(context.documents, start=1):
        print_prose(console, f"\n[{number}] {document.content}")


def _tell_why(reason: str) -> None:
    notices().print(f"\nNo model wrote an answer: {printable(reason)}", style="yellow", soft_wrap=True)


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}
