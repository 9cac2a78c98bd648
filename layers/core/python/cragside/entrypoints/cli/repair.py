"""`cragside repair`: mends what other databases have of workspaces."""

from typing import TYPE_CHECKING, Annotated

import typer

from cragside.domain.errors import CragsideError
from cragside.domain.faults import counted
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.api import LocalWorkspace
from cragside.entrypoints.cli.exit_codes import exit_code_of
from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.terminal import notices, output, printable
from cragside.entrypoints.error_lines import message_of

if TYPE_CHECKING:
    from cragside.bootstrap import Container


def repair(
    context: typer.Context,
    workspace: LocalWorkspace = None,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; fail if a workspace needs repair.")] = False,
) -> None:
    """Find workspaces whose share in Neo4j, Qdrant or Redis is not what PostgreSQL says, and build them anew.

    That happens when one of the databases was restored from a backup or emptied. Without `--workspace` all workspaces
    are looked at. What models said of passages is used again. Each workspace stays as it is until the new one is
    complete. Servers and workers may run. One that fails keeps no other one from being repaired.
    """
    session = session_of(context)
    settings = session.settings(workspace)

    async def work(container: "Container") -> int:
        names = [settings.workspace] if workspace else await container.workspaces.names()
        wrong = 0

        async def look_at(name: str) -> None:
            nonlocal wrong
            if not (found := await container.workspaces.disagreement(name)):
                output().print(f"{name}: all databases agree with the documents")
                return
            wrong += 1
            output().print(f"{name}: {found}")
            if not check:
                output().print(f"{name}: built anew from {counted(await _rebuilt(container, name), 'text')}")

        failures: list[CragsideError] = []
        for name in names:
            try:
                await look_at(name)
            except CragsideError as error:
                failures.append(error)
                notices().print(printable(f"{name}: {message_of(error)}"), soft_wrap=True)
        if failures:
            raise typer.Exit(exit_code_of(failures[0]))
        if not names:
            output().print("There are no workspaces")
        return wrong

    if session.run(settings, work) and check:
        output().print("Build these workspaces anew: run cragside repair")
        raise typer.Exit(exit_codes.FAILED)


async def _rebuilt(container: "Container", name: str) -> int:
    with notices().status(f"Indexing {name} ...") as shown:
        return await container.workspaces.reindex(
            name, lambda source: shown.update(f"{name}: indexed {printable(source)} ...")
        )
