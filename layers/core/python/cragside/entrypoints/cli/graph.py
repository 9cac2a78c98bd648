"""`cragside graph`: shows an entity of the knowledge graph."""

from typing import Annotated, Any
from urllib.parse import quote

import typer

from cragside.domain.errors import NotFound, ValidationError
from cragside.entrypoints.cli.query import one_of
from cragside.entrypoints.cli.target import Target, local_or_service
from cragside.entrypoints.cli.terminal import output, print_json, printable
from cragside.entrypoints.cli.wrapping import print_prose

_ARROWS = {"incoming": "<-", "outgoing": "->"}


@local_or_service
def graph(
    target: Target,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The entity.")] = None,
    entity: Annotated[str | None, typer.Option("--entity", hidden=True)] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what GET /graph/entity/NAME answers, and nothing else.")
    ] = False,
) -> None:
    """Show an entity of the knowledge graph: what it is, what it is connected with, and which documents name it."""
    asked = one_of(name, entity, name="NAME", flag="--entity")
    if not asked or not asked.strip():
        raise ValidationError('Name an entity: cragside graph "Harbour Board"')
    answer = target.request(lambda client: client.find(f"/graph/entity/{quote(asked, safe='')}"))
    if answer is None:
        raise NotFound(f"The graph of this workspace has no entity {printable(asked)}.")
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
