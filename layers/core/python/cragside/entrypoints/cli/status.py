"""`cragside status`: shows the size of a workspace."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from cragside.domain.faults import counted
from cragside.entrypoints.cli.api import LocalWorkspace
from cragside.entrypoints.cli.session import place_of, session_of
from cragside.entrypoints.cli.terminal import output, print_json, printable

if TYPE_CHECKING:
    from cragside.bootstrap import Container
    from cragside.ports.workspaces import KnowledgeStatus

_LABELS = {"lightrag_workspace": "in LightRAG", "waiting_changes": "changes waiting"}


def status(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")] = False,
    workspace: LocalWorkspace = None,
) -> None:
    """Show the size of a workspace, its model and its folder."""
    session = session_of(context)
    settings = session.settings(workspace)

    async def work(container: "Container") -> "KnowledgeStatus":
        await container.workspaces.check(settings.workspace, whole=True)
        return await (await container.workspaces.open(settings.workspace)).passages.status()

    known = {**asdict(session.run(settings, work)), "store": place_of(settings)}
    if not known["lightrag_workspace"]:
        del known["lightrag_workspace"]
    if as_json:
        print_json(known)
        return
    console = output()
    by_status = known.pop("by_status")
    if not known["waiting_changes"]:
        del known["waiting_changes"]
    waiting = by_status.get("pending", 0)
    for name, value in known.items():
        note = f" ({counted(waiting, 'document')} waiting)" if name == "passages" and waiting else ""
        console.print(f"{_LABELS.get(name, name.replace('_', ' ')):<17}{printable(str(value))}{note}", soft_wrap=True)
    for name, count in sorted(by_status.items()):
        console.print(f"  {name:<15}{count}")
