"""`cragside generations`: shows what RAG_GENERATIONS keeps of a workspace, goes back, and forgets."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.domain.faults import counted
from cragside.domain.names import memory_of
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.target import Target, local
from cragside.entrypoints.cli.terminal import agreed, json_option, output, print_json, printable

if TYPE_CHECKING:
    from cragside.bootstrap import Container
    from cragside.ports.files import ObjectVersion, VersionedStore

generations = typer.Typer(
    help="Show, bring back and forget earlier generations of a workspace in RAG_GENERATIONS.", no_args_is_help=True
)
_Memory = Annotated[bool, typer.Option("--memory", help="Of the workspace's memory, in place of its documents.")]


@generations.command("list")
@local
def list_generations(
    target: Target, memory: _Memory = False, as_json: Annotated[bool, json_option("JSON")] = False
) -> None:
    """List the generations of a workspace that the bucket keeps, newest first."""

    async def work(container: "Container") -> "list[ObjectVersion]":
        from cragside.composition.generations import kept

        return await kept(_objects(container), _store(target, memory))

    found = target.run(work)
    if as_json:
        print_json([{name: value for name, value in asdict(each).items() if name != "facts"} for each in found])
        return
    if not found:
        output().print(f"Workspace {target.settings.workspace} has no generation yet.")
    for each in found:
        newest = "  newest" if each.newest else ""
        output().print(printable(f"{each.id}  {each.at}  {each.size / 1024**2:>6.1f} MB{newest}"), soft_wrap=True)


@generations.command()
@local
def rollback(
    target: Target,
    version: Annotated[
        str, typer.Argument(metavar="ID", help="The generation, by the beginning of its id. Default: the one before.")
    ] = "",
    memory: _Memory = False,
) -> None:
    """Publish an earlier generation as the next one. What came after it is kept as an earlier generation.

    Changes that wait in the inbox are made afterwards.
    """

    async def work(container: "Container") -> int:
        from cragside.composition.generations import choice_of, kept, roll_back
        from cragside.ports.files import ObjectChanged

        objects, store = _objects(container), _store(target, memory)
        wanted = choice_of(await kept(objects, store), version) if version else ""
        try:
            return await roll_back(objects, store, wanted)
        except ObjectChanged as error:
            reason = "Somebody has published a generation meanwhile. Look at the list, and try again."
            raise ServiceUnavailable("knowledge_base", reason) from error

    number = target.run(work)
    output().print(f"Workspace {target.settings.workspace} is published as generation {number}.")


@generations.command()
@local
def forget(
    target: Target,
    whole: Annotated[bool, typer.Option("--all", help="The whole workspace, also its newest generation.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask. Needed where there is no terminal.")] = False,
) -> None:
    """Delete for good what the bucket keeps of a workspace and its memory beside the newest generations.

    A deleted document is in earlier generations, and its text in changes that were made, until this command or the
    bucket's lifecycle ends them. There is no way back to them afterwards.
    """
    name = target.settings.workspace
    found = f"All that is kept of workspace {name}{'' if whole else ' beside its newest generations'}"
    if not agreed(f"{found} is deleted.", "Delete it for good?", "Nothing was deleted. Pass --yes.", yes=yes):
        raise typer.Exit(exit_codes.FAILED)

    async def work(container: "Container") -> int:
        from cragside.composition.generations import forget

        return await forget(_objects(container), name, whole=whole)

    output().print(f"Deleted {counted(target.run(work), 'object version')} of workspace {name}.")


def _objects(container: "Container") -> "VersionedStore":
    if (objects := container.versioned_store) is None:
        raise ConfigurationError("RAG_GENERATIONS is not set: other stores have no generations.")
    return objects


def _store(target: Target, memory: bool) -> str:
    name = target.settings.workspace
    return memory_of(name) if memory else name
