"""`cragside explain`: which evidence a question gets, and why."""

from typing import Annotated

import typer

from cragside.entrypoints.cli.target import Target, local_or_service
from cragside.entrypoints.cli.terminal import print_json


@local_or_service
def explain(
    target: Target,
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="What you want to know; /rag before it is optional.")
    ],
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="NAME", help="The chat model that the request names.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what POST /v1/explain answers, and nothing else.")
    ] = False,
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
    from cragside.entrypoints.cli.explanation_report import show_explanation

    show_explanation(explanation)
