"""`cragside enrich`: shows a prompt with its evidence."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from cragside.entrypoints.cli.target import Target, local
from cragside.entrypoints.cli.terminal import output, print_json
from cragside.entrypoints.cli.wrapping import print_prose

if TYPE_CHECKING:
    from cragside.application.enricher import Enriched
    from cragside.bootstrap import Container


@local
def enrich(
    target: Target,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The prompt, or - to read it from standard input.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the body that POST /v1/enrich answers, and nothing else.")
    ] = False,
    prompt_only: Annotated[
        bool, typer.Option("--prompt-only", help="Print the prompt that Ollama would get, and nothing else.")
    ] = False,
) -> None:
    """Show a prompt with the evidence that is added to it.

    Only a TEXT that begins with the command, as in "/rag what lights the house?", gets evidence.
    """
    prompt = _text(text)

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
        _show(enriched, target.settings.command_prefix)


def _text(argument: str) -> str:
    """The argument or standard input as valid Unicode, whatever bytes the shell handed over."""
    given = sys.stdin.buffer.read() if argument == "-" else argument.encode("utf-8", "surrogateescape")
    return given.decode("utf-8-sig", "replace")


def _show(enriched: "Enriched", prefix: str) -> None:
    from cragside.entrypoints.cli.evidence_report import show_context

    console = output()
    if enriched.rag_context is None:
        console.print(f"Untouched: the text does not begin with {prefix}. Ollama would get it as it is.")
        return
    show_context(console, enriched.rag_context)
    console.print("\nThe prompt that Ollama would get:\n")
    print_prose(console, enriched.request["prompt"])
