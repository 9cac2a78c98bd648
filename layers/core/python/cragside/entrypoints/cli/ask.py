"""`cragside ask`, `enrich` and `explain`: answer a question, and show the evidence that it gets."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from cragside.domain.errors import ServiceUnavailable, ValidationError
from cragside.entrypoints.cli.target import Target, local, local_or_service
from cragside.entrypoints.cli.terminal import WordWrap, json_option, notices, output, print_json, print_prose, printable

if TYPE_CHECKING:
    from cragside.application.answerer import Answer
    from cragside.application.enricher import Enriched
    from cragside.bootstrap import Container


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
    as_json: Annotated[bool, json_option("one JSON document")] = False,
) -> None:
    """Answer a question from your documents, with sources.

    Ollama's model writes the answer from graded evidence and cites it as [1], [2]. Without a model you see the
    evidence.
    Ollama is looked for at OLLAMA_BASE_URL, else at OLLAMA_HOST, else at http://127.0.0.1:11434.
    If the knowledge base cannot be read and there is no other evidence, the command ends with 3.
    """

    async def work(container: "Container") -> None:
        conversations, workspace = container.conversations, container.settings.workspace
        if go_on and conversations is None:
            raise ValidationError("There is no conversation to continue: this store is read-only.")
        history = conversations.last(workspace) if go_on and conversations else []
        answer = await container.answerer.answer(question, history=history, model=model, workspace=workspace)
        if as_json:
            text = "".join([piece async for piece in answer.pieces]) if answer.pieces is not None else None
            print_json({"model": answer.model, "answer": text, "rag_context": answer.context.as_dict()})
        else:
            text = await _show_answer(answer)
        if conversations is not None:
            said = {"user": question, "assistant": text}
            turns = [{"role": role, "content": content} for role, content in said.items() if content is not None]
            conversations.keep(workspace, [*history, *turns])
        lost = {each.component: each.reason for each in answer.context.degraded}
        if "knowledge_base" in lost and not answer.context.documents:
            raise ServiceUnavailable("knowledge_base", lost["knowledge_base"])

    target.run(work)


async def _show_answer(answer: "Answer") -> str | None:
    """Print an answer while it is written, and its sources. Without one, print the evidence."""
    from cragside.entrypoints.cli.evidence_report import show_context, show_sources

    console = output()
    if answer.pieces is None:
        show_context(console, answer.context)
        for number, document in enumerate(answer.context.documents, start=1):
            print_prose(console, f"\n[{number}] {document.content}")
        why = f"\nNo model wrote an answer: {printable(answer.reason)}"
        notices().print(why, style="yellow", soft_wrap=True)
        return None
    written: list[str] = []
    wrap = WordWrap(console.width) if console.is_terminal else None
    async for piece in answer.pieces:
        written.append(piece)
        console.file.write(wrap.feed(printable(piece)) if wrap else printable(piece))
        console.file.flush()
    console.file.write(f"{wrap.end()}\n" if wrap else "\n")
    show_sources(console, answer.context)
    return "".join(written)


@local
def enrich(
    target: Target,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The prompt, or - to read it from standard input.")],
    as_json: Annotated[bool, json_option("the body that POST /v1/enrich answers")] = False,
    prompt_only: Annotated[
        bool, typer.Option("--prompt-only", help="Print the prompt that Ollama would get, and nothing else.")
    ] = False,
) -> None:
    """Show a prompt with the evidence that is added to it.

    Only a TEXT that begins with the command, as in "/rag what lights the house?", gets evidence.
    """
    # Valid Unicode, whatever bytes the shell hands over.
    given = sys.stdin.buffer.read() if text == "-" else text.encode("utf-8", "surrogateescape")
    prompt = given.decode("utf-8-sig", "replace")

    async def work(container: "Container") -> "Enriched":
        # The service tells the model on request, the proxy by the setting.
        tell_none = container.settings.tell_none and not as_json
        return await container.enricher.enrich(
            {"prompt": prompt}, workspace=container.settings.workspace, tell_none=tell_none
        )

    enriched = target.run(work)
    if as_json:
        from cragside.application.contract import enhanced_request

        print_json(enhanced_request(enriched))
    elif prompt_only:
        typer.echo(enriched.request["prompt"].encode("utf-8", "replace"))
    else:
        _show_prompt(enriched, target.settings.command_prefix)


def _show_prompt(enriched: "Enriched", prefix: str) -> None:
    from cragside.entrypoints.cli.evidence_report import show_context

    console = output()
    if enriched.rag_context is None:
        console.print(f"Untouched: the text does not begin with {prefix}. Ollama would get it as it is.")
        return
    show_context(console, enriched.rag_context)
    console.print("\nThe prompt that Ollama would get:\n")
    print_prose(console, enriched.request["prompt"])


@local_or_service
def explain(
    target: Target,
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="What you want to know; /rag before it is optional.")
    ],
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="NAME", help="The chat model that the request names.")
    ] = None,
    as_json: Annotated[bool, json_option("what POST /v1/explain answers")] = False,
) -> None:
    """Explain which evidence a question gets: the steps with their times, and each candidate with its reasons.

    A candidate shows its score, the score that it needed, the question's words that it has, and its best strip. No
    model writes an answer.
    """
    body = {"prompt": question, **({} if model is None else {"model": model})}
    explanation = target.request(lambda client: client.post("/v1/explain", body))
    if as_json:
        print_json(explanation)
        return
    from cragside.entrypoints.cli.evidence_report import show_explanation

    show_explanation(explanation)
