"""`cragside documents`: lists documents and their status."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cragside.domain.faults import counted
from cragside.entrypoints.cli.api import Address, Token, WorkspaceName, ask
from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.terminal import output, print_json, printable

if TYPE_CHECKING:
    from cragside.entrypoints.cli.service import Service


def documents(
    context: typer.Context,
    status: Annotated[
        str | None, typer.Option("--status", help="pending, searchable, enriched or failed. Default: all.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="Most documents.")] = 100,
    offset: Annotated[int, typer.Option("--offset", min=0, max=1_000_000_000, help="Skip this many.")] = 0,
    unread: Annotated[
        bool, typer.Option("--unread", help="Only documents of whose files something was not read.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what GET /v1/documents answers, and nothing else.")
    ] = False,
    workspace: WorkspaceName = None,
    api: Address = None,
    token: Token = None,
) -> None:
    """List documents, latest first: status, id, passages and name, and what of a file was not read."""
    session = session_of(context)
    settings = session.settings(workspace)

    async def work(service: "Service") -> Any:
        only = {"status": status, "unread": unread or None}
        return await service.client.get("/v1/documents", limit=limit, offset=offset, **only)

    answer = ask(session, settings, work, address=api, token=token)
    if as_json:
        print_json(answer)
    else:
        _show(answer)


def _show(answer: dict[str, Any]) -> None:
    console = output()
    for document in answer["documents"]:
        label = document["label"]
        remark = "; ".join(filter(None, (document["error"], document["unread"])))
        name = f"{label}  ({remark})" if remark else label
        line = f"{document['status']:<11}{document['id']}  {document['passages']:>5}  {name}"
        console.print(" ".join(printable(line).split("\n")), style=_style(document), soft_wrap=True)
    shown, total = len(answer["documents"]), answer["total"]
    documents = counted(total, "document")
    console.print(f"{shown} of {documents}." if shown < total else f"{documents}.")


def _style(document: dict[str, Any]) -> str | None:
    if document["error"]:
        return "red"
    return "yellow" if document["unread"] else None
