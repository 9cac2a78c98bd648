"""Asks for consent to removals, and carries out the plan of a sync."""

import asyncio
import shlex
import sys
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cragside.composition.files import FoundFile, TextDigests, root_of
from cragside.domain.errors import NotFound, ValidationError
from cragside.domain.syncing import KnownDocument
from cragside.entrypoints.cli.comparing import Comparison, Loss, is_gone, lost
from cragside.entrypoints.cli.indexing import Prune, index, offers_of
from cragside.entrypoints.cli.indexing_report import FoundItem, Line, Report
from cragside.entrypoints.cli.progress import Options
from cragside.entrypoints.cli.terminal import printable

if TYPE_CHECKING:
    from cragside.entrypoints.cli.service import Service


async def check_gone(service: "Service", folders: Sequence[Path], *, yes: bool, command: Sequence[str]) -> None:
    """Raise an error for a missing folder, unless it has documents and `yes` agrees to remove them.

    The error names the command that does: `command` with the folder appended.
    """
    gone = [folder for folder in folders if await asyncio.to_thread(is_gone, folder)]
    for folder in gone:
        count = len(await service.below(root_of(folder)))
        if not count:
            raise typer.BadParameter(f"dir '{printable(str(folder))}' does not exist.", param_hint="'FOLDER...'")
        if not yes:
            lie = "1 document lies" if count == 1 else f"{count} documents lie"
            way = printable(shlex.join([*command, str(folder)]))
            raise ValidationError(
                f"dir '{printable(str(folder))}' does not exist, and {lie} below it. Nothing was done. "
                f"To remove {'it' if count == 1 else 'them'}, run: {way}"
            )


def pruning(folders: Sequence[Path], *, yes: bool, max_bytes: int) -> Prune:
    """Returns a function that removes the documents of missing and empty files. Many need consent."""

    async def prune(
        service: "Service", found: Sequence[FoundItem]
    ) -> tuple[Sequence[FoundItem], Callable[[Report], Awaitable[None]]]:
        async with TextDigests(max_bytes) as digests:
            gone = await lost(service, folders, found, digests)
        removed = gone.plan.removed if agreed(gone.losses, yes=yes) else ()
        emptied = gone.emptied & {document.source for document in removed}
        rest = [item for item in found if not (isinstance(item, FoundFile) and item.source in emptied)]
        return rest, lambda report: remove(service, removed, report, emptied=emptied)

    return prune


def agreed(losses: Sequence[Loss], *, yes: bool) -> bool:
    """Ask at the terminal whether to remove that much. Raises `ValidationError` where there is no terminal."""
    if yes or not losses:
        return True
    lost = printable("; ".join(map(str, losses)))
    if not on_terminal():
        raise ValidationError(
            f"{lost}. Nothing was done. To remove them, pass --yes. Otherwise check what happened to the files."
        )
    return typer.confirm(f"{lost}. Remove them?", err=True)


def on_terminal() -> bool:
    """Whether standard input is a terminal, so that somebody can be asked."""
    return sys.stdin.isatty()


async def carry_out(
    service: "Service",
    found: Comparison,
    options: Options,
    report: Report,
    *,
    max_bytes: int,
    wait: bool = True,
    as_json: bool = False,
) -> None:
    """Carry out the plan. New files are indexed before documents are removed, so that a crash loses nothing."""
    made = found.plan
    for move in made.moved:
        try:
            await service.move(move.document.id, source=move.to.source, name=move.to.name)
        except (NotFound, ValidationError) as error:
            report.add(Line(move.to.name, "failed", error.message, move.document.id, source=move.to.source))
        else:
            earlier = f"was {found.earlier_name(move)}"
            report.add(Line(move.to.name, "moved", earlier, move.document.id, source=move.to.source))
    again = [state for state in made.unchanged if state.source in found.unfinished]
    wanted = [found.files[state.source] for state in (*made.added, *made.changed, *again)]
    for refused in found.refused:
        report.refuse(refused, found.ids.get(refused.source, ""))
    offers = offers_of(wanted, max_bytes)
    await index(service, offers, options, report, wait=wait, found=wanted, as_json=as_json)
    for state in made.unchanged:
        if state.source not in found.unfinished:
            report.add(Line(state.name, "unchanged", "", found.ids[state.source], source=state.source))
    await remove(service, made.removed, report, emptied=found.emptied)


async def remove(
    service: "Service", documents: Sequence[KnownDocument], report: Report, *, emptied: Collection[str] = ()
) -> None:
    """Remove documents whose files are gone or empty."""
    for document in documents:
        if not await service.delete(document.id):  # somebody else was faster
            continue
        why = "its file is empty" if document.source in emptied else "its file is gone"
        report.add(Line(document.name, "removed", why, document.id, source=document.source))
