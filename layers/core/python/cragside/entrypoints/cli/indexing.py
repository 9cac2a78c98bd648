"""Indexing at a terminal: what `ingest`, `index` and `bake` have in common."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cragside.composition.files import SUPPORTED, FoundFile, Refused, find_files, is_no_mistake, read_file
from cragside.domain.errors import (
    ConfigurationError,
    DeadlineExceeded,
    Forbidden,
    NotFound,
    PayloadTooLarge,
    ProcessingError,
    ServiceUnavailable,
    Unauthorized,
    ValidationError,
)
from cragside.domain.faults import counted
from cragside.entrypoints.cli.api import ask, named_workspace
from cragside.entrypoints.cli.indexing_report import FoundItem, Line, Report, tell_why_it_stopped
from cragside.entrypoints.cli.progress import Offer, Options
from cragside.entrypoints.cli.session import place_of
from cragside.entrypoints.cli.taking_in import TakingIn, bar
from cragside.entrypoints.cli.terminal import output, print_json, printable, progress

if TYPE_CHECKING:
    from rich.progress import Progress

    from cragside.entrypoints.cli.service import Service
    from cragside.entrypoints.cli.session import Session
    from cragside.settings import Settings

OptionalPaths = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PATH...", exists=True, readable=False, help="Files and folders to index."),
]

Remove = Callable[["Report"], Awaitable[None]]
Prune = Callable[["Service", Sequence[FoundItem]], Awaitable[tuple[Sequence[FoundItem], Remove]]]

# Documents are indexed in their order: the first so many that are not finished tell how far all are.
_LOOKED_AT = 10
# They end a run; anything else is about one document.
_ENDING = (ConfigurationError, DeadlineExceeded, ServiceUnavailable, Unauthorized)


@dataclass(frozen=True, slots=True)
class Run:
    """How, and by whom, things are indexed: by this process unless an address is given.

    `prune` is asked first which documents have lost their files. It returns what is left to index, and what removes
    those documents, last of all.
    """

    options: Options = field(default_factory=Options)
    address: str | None = None
    token: str | None = None
    wait: bool = True
    prune: "Prune | None" = None
    as_json: bool = False


def found_in(paths: Sequence[Path], urls: Sequence[str] = (), *, as_json: bool = False) -> list[FoundItem]:
    """What there is to index. Raises `ValidationError` when that is nothing."""
    with progress(as_json=as_json).status("Looking for files ..."):
        found: list[FoundItem] = [*find_files(paths), *map(Offer, dict.fromkeys(urls))]
    if all(isinstance(item, Refused) and item.skipped for item in found):
        raise ValidationError(f"There is no file to index; supported are {SUPPORTED}.")
    return found


async def offers_of(found: Sequence[FoundItem], max_bytes: int) -> AsyncGenerator[Offer | Refused]:
    """What was found, each file read when it is its turn."""
    for item in found:
        if isinstance(item, FoundFile):
            content = await asyncio.to_thread(read_file, item, max_bytes)
            yield (
                content
                if isinstance(content, Refused)
                else Offer(item.name, content, source=item.source, named=item.named)
            )
        else:
            yield item


async def index(
    service: "Service",
    offers: AsyncGenerator[Offer | Refused],
    options: Options,
    report: Report,
    *,
    wait: bool = True,
    found: Sequence[FoundItem] | None = None,
    as_json: bool = False,
) -> None:
    """Send the documents and, with `wait`, wait until they are indexed.

    Progress goes to standard error, not with `as_json`. It has totals if `found` lists what is offered.
    """
    with bar(as_json=as_json) as shown:
        taking_in = TakingIn(shown, found)
        async with aclosing(offers) as brought:
            async for offer in brought:
                taking_in.begin(offer)
                await _take(service, offer, options, report)
                taking_in.end(offer)
        taking_in.close()
        report.complete = True
        if wait and report.taken:
            await _follow(service, report, shown)
        elif not wait:
            report.leave([(number, taken.progress) for number, taken in report.taken.values()], "accepted")


async def _take(service: "Service", offer: Offer | Refused, options: Options, report: Report) -> None:
    if isinstance(offer, Refused):
        report.refuse(offer)
        return
    try:
        report.take(offer.name, await service.take(offer, options))
    except _ENDING:
        raise
    except (Forbidden, NotFound, ProcessingError, ValidationError) as error:
        if isinstance(error, Forbidden) and "limit" not in error.details:
            raise
        reason = error.message if offer.content is None else str(error.details.get("reason", error.message))
        harmless = isinstance(error, PayloadTooLarge) or is_no_mistake(reason)
        status = "skipped" if harmless and not offer.named else "failed"
        report.add(Line(offer.name, status, reason, source=offer.source))


async def _follow(service: "Service", report: Report, shown: "Progress") -> None:
    waiting = {identifier: (number, taken.progress) for identifier, (number, taken) in report.taken.items()}
    total = sum(progress.steps for _, progress in waiting.values())
    documents = len(waiting)
    step = shown.add_task(f"Indexing: 0 of {counted(documents, 'document')}", total=total)
    done = 0
    async with service.working() as trouble:
        while waiting:
            reason = trouble()
            settled = unsettled = 0
            for identifier in list(waiting):
                if unsettled == _LOOKED_AT and not reason:
                    break
                number, before = waiting[identifier]
                progress = await service.progress(identifier)
                if progress is not None and not progress.settled:
                    waiting[identifier] = number, progress
                    unsettled += 1
                    continue
                report.settle(number, progress)
                done += before.steps
                settled += 1
                del waiting[identifier]
            under_way = sum(progress.done for _, progress in islice(waiting.values(), _LOOKED_AT))
            description = f"Indexing: {documents - len(waiting)} of {counted(documents, 'document')}"
            shown.update(step, completed=min(done + under_way, total), description=description)
            if settled:
                continue
            if reason and waiting:
                report.stopped = reason
                report.leave(waiting.values(), "waiting")
                return
            await asyncio.sleep(service.looks_every)


async def until_idle(service: "Service", *, look_on: bool = False, as_json: bool = False) -> str:
    """Process the workspace's queue, or with `look_on` only watch it, until it is empty. Returns why it stopped."""
    with progress(as_json=as_json).status("Enriching ...") as shown:
        async with nullcontext(_nothing_said) if look_on else service.working() as trouble:
            while True:
                reason, stats = trouble(), await service.stats()
                left = stats["queue"]["pending"] + stats["queue"]["processing"]
                if not left:
                    return ""
                if reason:
                    return reason
                shown.update(f"Enriching: {left} tasks left, {stats['totals']['enriched']} passages enriched ...")
                await asyncio.sleep(service.looks_every)


def _nothing_said() -> str:
    return ""


def index_found(session: "Session", settings: "Settings", found: Sequence[FoundItem], run: Run, report: Report) -> None:
    """Index what was found, and remove what `run.prune` finds."""
    report.found = found
    if all(isinstance(item, Refused) for item in found) and not run.prune:
        for item in found:
            if isinstance(item, Refused):
                report.refuse(item)
        return

    async def work(service: "Service") -> None:
        opening.stop()
        left, remove = await run.prune(service, found) if run.prune else (found, None)
        report.found = left
        offers = offers_of(left, settings.max_file_bytes)
        await index(service, offers, run.options, report, wait=run.wait, found=left, as_json=run.as_json)
        if remove:
            await remove(report)

    with progress(as_json=run.as_json).status("Opening the knowledge base ...") as opening:
        ask(session, settings, work, address=run.address, token=run.token)


def where_of(settings: "Settings", address: str | None) -> str:
    """The workspace, if it is known, and where it is."""
    place, workspace = printable(address or place_of(settings)), named_workspace(settings, address)
    return f"Workspace {workspace} in {place}" if workspace else f"In {place}"


def end(report: Report, summary: str, *, as_json: bool, address: str | None, **fields: Any) -> None:
    """Print the report and end the command with its exit code."""
    if as_json:
        print_json({**fields, **report.body()})
    else:
        report.show()
        output().print(f"{report}. {summary}", soft_wrap=True)
    if report.stopped:
        tell_why_it_stopped(report.stopped, report.counts["waiting"], address=address)
    if report.exit_code:
        raise typer.Exit(report.exit_code)
