"""`cragside explain`: which evidence a question gets, and why."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cragside.entrypoints.cli.api import Address, Token, WorkspaceName, ask
from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.terminal import print_json

if TYPE_CHECKING:
    from cragside.entrypoints.cli.service import Service


def explain(
    context: typer.Context,
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="What you want to know; /rag before it is optional.")
    ],
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="NAME", help="The chat model that the request names.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what POST /v1/explain answers, and nothing else.")
    ] = False,
    workspace: WorkspaceName = None,
    api: Address = None,
    token: Token = None,
) -> None:
    """Explain which evidence a question gets: the steps with their times, and each candidate with its reasons.

    A candidate shows its score, the score that it needed, the question's words that it has, and its best strip. No
    model writes an answer.
    """
    session = session_of(context)
    settings = session.settings(workspace)
    body = {"prompt": question, **({} if model is None else {"model": model})}

    async def work(service: "Service") -> dict[str, Any]:
        explanation: dict[str, Any] = await service.client.post("/v1/explain", body)
        return explanation

    explanation = ask(session, settings, work, address=api, token=token)
    if as_json:
        print_json(explanation)
        return
    from cragside.entrypoints.cli.explanation_report import show_explanation

    show_explanation(explanation)
