"""`cragside graph`: shows an entity of the knowledge graph."""

from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from cragside.domain.errors import NotFound, ValidationError
from cragside.entrypoints.cli.api import Address, Token, WorkspaceName, ask, given_once
from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.terminal import output, print_json, printable
from cragside.entrypoints.cli.wrapping import print_prose

if TYPE_CHECKING:
    from cragside.entrypoints.cli.service import Service

_ARROWS = {"incoming": "<-", "outgoing": "->"}


def graph(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The entity.")] = None,
    entity: Annotated[str | None, typer.Option("--entity", metavar="NAME", help="The entity, as an option.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what GET /graph/entity/NAME answers, and nothing else.")
    ] = False,
    workspace: WorkspaceName = None,
    api: Address = None,
    token: Token = None,
) -> None:
    """Show an entity of the knowledge graph: what it is, what it is connected with, and which documents name it."""
    session = session_of(context)
    settings = session.settings(workspace)
    asked = given_once(name, entity, name="NAME", flag="--entity")
    if not asked or not asked.strip():
        raise ValidationError('Name an entity: cragside graph "Harbour Board"')

    async def work(service: "Service") -> Any:
        found = await service.client.find(f"/graph/entity/{quote(asked, safe='')}")
        if found is None:
            raise NotFound(f"The graph of this workspace has no entity {printable(asked)}.")
        return found

    answer = ask(session, settings, work, address=api, token=token)
    if as_json:
        print_json(answer)
    else:
        _show(answer)


def _show(answer: dict[str, Any]) -> None:
    console = output()
    entity = answer["entity"]
    console.print(printable(f"{entity['name']} ({entity['type']})"), style="bold")
    print_prose(console, entity["description"])
    for connection in answer["connections"]:
        line = f"  {_ARROWS[connection['direction']]} {connection['entity']}: {connection['relationship']}"
        print_prose(console, line)
    for document in answer["documents"]:
        console.print(printable(f"  in {document['source']}"), soft_wrap=True)
