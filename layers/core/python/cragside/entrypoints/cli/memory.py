"""`cragside memory`: adds, searches, lists and forgets conversations."""

from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from cragside.domain.errors import NotFound, ProcessingError
from cragside.domain.exchange import SKIPPED
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.running import tell_why_it_stopped, until_idle
from cragside.entrypoints.cli.target import Target, local_or_service
from cragside.entrypoints.cli.terminal import json_option, output, print_json, print_prose, print_result, printable

if TYPE_CHECKING:
    from cragside.entrypoints.cli.service import Service

memory = typer.Typer(
    help="Remember exchanges of a conversation, search, list and forget them.",
    no_args_is_help=True,
)
_AsJson = Annotated[bool, json_option("the route's answer")]


@memory.command()
@local_or_service
def add(
    target: Target,
    user: Annotated[str, typer.Option(metavar="TEXT", help="What the user said.")],
    assistant: Annotated[str, typer.Option(metavar="TEXT", help="What was answered.")],
    skill: Annotated[str | None, typer.Option(help="The skill that was at work.")] = None,
    date: Annotated[str | None, typer.Option(help="ISO 8601; default: now.")] = None,
    as_json: _AsJson = False,
) -> None:
    """Remember one exchange. Greetings, blank answers and very short exchanges are skipped."""
    given = {"user": user, "assistant": assistant, "skill": skill, "date": date}
    body = {name: value for name, value in given.items() if value is not None}

    async def work(service: "Service") -> tuple[Any, str]:
        answer = await service.client.post("/v1/memories", body)
        if not answer["indexed"] or target.address:  # a service does the rest by itself
            return answer, ""
        return answer, await until_idle(service, as_json=as_json)

    answer, stopped = target.ask(work)
    if as_json:
        print_json(answer)
    elif answer["indexed"]:
        soon = "" if answer.get("searchable") or not target.address else " It can be recalled in a moment."
        output().print(f"Remembered.{soon}")
    else:
        output().print(f"Not remembered: {printable(str(answer.get('reason', '')))}", soft_wrap=True)
    if stopped:
        tell_why_it_stopped(stopped, target)
        raise typer.Exit(exit_codes.UNAVAILABLE)
    if not answer["indexed"] and answer.get("reason") not in SKIPPED:
        raise typer.Exit(exit_codes.UNAVAILABLE if answer.get("retryable") else exit_codes.FAILED)


@memory.command()
@local_or_service
def search(
    target: Target,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The question.")],
    mode: Annotated[
        str | None, typer.Option(help="local, global, hybrid, naive or mix. Default: RAG_MEMORY_MODE.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Most passages.")] = 5,
    as_json: _AsJson = False,
) -> None:
    """Show what memory knows about a question, as text for a system prompt."""
    body: dict[str, Any] = {"query": text, "limit": limit} | ({"mode": mode} if mode else {})

    async def work(service: "Service") -> Any:
        await service.prepare()
        return await service.client.post("/v1/memories/search", body)

    answer = target.ask(work)
    if as_json:
        print_json(answer)
    else:
        print_prose(output(), answer["text"] or "Nothing is remembered on this.")


@memory.command(name="list")
@local_or_service
def list_(
    target: Target,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Most exchanges.")] = 20,
    offset: Annotated[int, typer.Option(min=0, help="Skip this many of the latest.")] = 0,
    as_json: _AsJson = False,
) -> None:
    """List the exchanges, latest first, with their ids."""
    answer = target.request(lambda client: client.get("/v1/memories", limit=limit, offset=offset))
    print_result(answer, _show_list, as_json=as_json)


def _show_list(answer: Any) -> None:
    try:
        lines = [(_heading(each), str(each["text"])) for each in answer["memories"]]
        total = int(answer["total"])
    except (KeyError, TypeError, ValueError) as error:
        raise ProcessingError("The service did not answer with exchanges. Is --api the address of cragside?") from error
    console = output()
    for heading, text in lines:
        console.print(printable(heading), soft_wrap=True)
        print_prose(console, f"{text}\n")
    console.print(f"{len(lines)} of {total} exchanges.")


def _heading(exchange: dict[str, Any]) -> str:
    """Return the id, the time, and the user if one is named."""
    return "  ".join(str(exchange[name]) for name in ("id", "at", "end_user") if exchange.get(name))


@memory.command()
@local_or_service
def forget(
    target: Target,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids, as `cragside memory list` shows them.")],
) -> None:
    """Forget exchanges. Their texts are gone at once."""
    unknown: list[str] = []

    async def work(service: "Service") -> None:
        for identifier in dict.fromkeys(ids):
            if await service.client.delete(f"/v1/memories/{quote(identifier, safe='')}"):
                output().print(f"forgotten {printable(identifier)}", soft_wrap=True)
            else:
                unknown.append(identifier)

    target.ask(work)
    if unknown:
        names = ", ".join(map(printable, unknown))
        raise NotFound(f"There is no exchange {names} in memory. `cragside memory list` shows the ids.")
