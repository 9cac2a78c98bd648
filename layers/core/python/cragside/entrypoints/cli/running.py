"""Carries out a run: sends documents, waits until they are indexed, removes those that are gone, and reports."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from cragside.composition.files import SUPPORTED, FoundFile, Refused, find_files, is_no_mistake, read_file
from cragside.domain.errors import (
    ConfigurationError,
    CragsideError,
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
from cragside.domain.syncing import KnownDocument
from cragside.entrypoints.cli.offers import Offer, Options
from cragside.entrypoints.cli.report import FoundItem, Report
from cragside.entrypoints.cli.target import Target
from cragside.entrypoints.cli.terminal import agreed, notices, output, print_json, printable, progress

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from cragside.entrypoints.cli.planning import RunPlan
    from cragside.entrypoints.cli.service import Service

Result = TypeVar("Result")

# Documents are indexed in their order: the first so many that are not finished tell how far all are.
_LOOKED_AT = 10
# They end a run; anything else is about one document.
_ENDING = (ConfigurationError, DeadlineExceeded, ServiceUnavailable, Unauthorized)
_LONGEST_NAME = 40


def find(paths: Sequence[Path], urls: Sequence[str] = (), *, as_json: bool = False) -> list[FoundItem]:
    """Find what to index. Raises `ValidationError` if there is nothing."""
    with progress(as_json=as_json).status("Looking for files ..."):
        found: list[FoundItem] = [*find_files(paths), *map(Offer, dict.fromkeys(urls))]
    if all(isinstance(item, Refused) and item.skipped for item in found):
        raise ValidationError(f"There is no file to index; supported are {SUPPORTED}.")
    return found


@dataclass
class Run:
    """A run of a command that sends documents to `target`.

    Without `wait` it ends when the documents are queued. With `yes` it removes many documents without asking. Without
    `keeps`, what was sent is lost if the run ends early.
    """

    target: Target
    options: Options = field(default_factory=Options)
    wait: bool = True
    yes: bool = False
    keeps: bool = True
    as_json: bool = False
    report: Report = field(default_factory=Report)

    def ask(self, work: "Callable[[Service], Awaitable[Result]]") -> Result:
        """Run `work`. If it ends early, say that queued documents are safe and how many were not sent."""

        async def begin(service: "Service") -> Result:
            opening.stop()
            return await work(service)

        try:
            with progress(as_json=self.as_json).status("Opening the knowledge base ...") as opening:
                return self.target.ask(begin)
        except (KeyboardInterrupt, CragsideError):
            if self.keeps:
                self._tell_what_is_safe()
            raise

    def confirm(self, planned: "RunPlan") -> "RunPlan":
        """Ask at the terminal before much is removed. Raises `ValidationError` where there is no terminal."""
        lost = "; ".join(map(str, planned.losses))
        refusal = "Nothing was done. To remove them, pass --yes. Otherwise check what happened to the files."
        if not lost or agreed(f"{lost}.", "Remove them?", refusal, yes=self.yes):
            return planned
        return planned.without_removals()

    def _tell_what_is_safe(self) -> None:
        waiting, unsent = len(self.report.waiting), self.report.unsent
        if waiting:
            tell_what_waits(waiting, self.target)
        if self.report.lines and unsent != 0:
            rest = {None: "The rest was", 1: "1 more was"}.get(unsent, f"{unsent} more were")
            notices().print(f"{rest} not taken in: run the same command again.", soft_wrap=True)

    async def carry_out(self, service: "Service", planned: "RunPlan") -> None:
        """Carry out a plan. New files are indexed before documents are removed, so that a crash loses nothing."""
        report, changes = self.report, planned.changes
        for move in changes.moved:
            to, known = move.to, {"document_id": move.document.id, "source": move.to.source}
            try:
                await service.move(move.document.id, source=to.source, name=to.name)
            except (NotFound, ValidationError) as error:
                report.add(to.name, "failed", error.message, **known)
            else:
                report.add(to.name, "moved", f"was {planned.earlier_name(move)}", **known)
        await self.send(service, _each(planned.wanted), planned.wanted, ids=planned.ids)
        sent = {item.source for item in planned.wanted if isinstance(item, FoundFile)}
        for state in changes.unchanged:
            if state.source not in sent:
                report.add(state.name, "unchanged", document_id=planned.ids[state.source], source=state.source)
        for document in changes.removed:
            why = "its file is empty" if document.source in planned.emptied else "its file is gone"
            await self.remove(service, document, why)

    async def remove(self, service: "Service", document: KnownDocument, why: str) -> None:
        """Remove a document whose file is gone, unless somebody else was faster."""
        if await service.delete(document.id):
            self.report.add(document.name, "removed", why, document_id=document.id, source=document.source)

    async def send(
        self,
        service: "Service",
        items: AsyncGenerator[FoundItem],
        found: Sequence[FoundItem] | None = None,
        *,
        ids: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Send documents, each read when it is its turn, and wait until they are indexed.

        `found` lists the items if they are known beforehand: the progress on standard error then has totals. `ids` has
        the documents of refused files from before.
        """
        report = self.report
        report.unsent = None if found is None else sum(not isinstance(item, Refused) for item in found)
        with _bar(as_json=self.as_json) as shown:
            sending = _Sending(shown, found)
            async with aclosing(items) as each:
                async for item in each:
                    sending.begin(item)
                    offer = await self._read(item)
                    if isinstance(offer, Refused):
                        report.refuse(offer, ids.get(offer.source, ""))
                    else:
                        await self._take(service, offer)
                    sending.end(offer)
                    if report.unsent and not isinstance(item, Refused):
                        report.unsent -= 1
            sending.close()
            report.unsent = 0
            if not self.wait:
                report.leave("accepted")
            elif report.waiting:
                await self._follow(service, shown)

    async def _read(self, item: FoundItem) -> Offer | Refused:
        if not isinstance(item, FoundFile):
            return item
        content = await asyncio.to_thread(read_file, item, self.target.settings.max_file_bytes)
        if isinstance(content, Refused):
            return content
        return Offer(item.name, content, source=item.source, named=item.named)

    async def _take(self, service: "Service", offer: Offer) -> None:
        try:
            self.report.take(offer.name, await service.take(offer, self.options))
        except _ENDING:
            raise
        except (Forbidden, NotFound, ProcessingError, ValidationError) as error:
            if isinstance(error, Forbidden) and "limit" not in error.details:
                raise
            reason = error.message if offer.content is None else str(error.details.get("reason", error.message))
            harmless = isinstance(error, PayloadTooLarge) or is_no_mistake(reason)
            status = "skipped" if harmless and not offer.named else "failed"
            self.report.add(offer.name, status, reason, source=offer.source)

    async def _follow(self, service: "Service", shown: "Progress") -> None:
        """Wait until what was sent is indexed, or until that stops."""
        report, waiting = self.report, self.report.waiting
        steps = {identifier: progress.steps for identifier, (_, progress) in waiting.items()}
        documents, total = counted(len(waiting), "document"), sum(steps.values())
        step, done = shown.add_task(f"Indexing: 0 of {documents}", total=total), 0
        async with service.working() as trouble:
            while waiting:
                reason = trouble()
                settled = unsettled = 0
                for identifier in list(waiting):
                    if unsettled == _LOOKED_AT and not reason:
                        break
                    progress = await service.progress(identifier)
                    if progress is not None and not progress.settled:
                        waiting[identifier] = waiting[identifier][0], progress
                        unsettled += 1
                        continue
                    report.settle(identifier, progress)
                    done += steps[identifier]
                    settled += 1
                under_way = sum(progress.done for _, progress in islice(waiting.values(), _LOOKED_AT))
                description = f"Indexing: {len(steps) - len(waiting)} of {documents}"
                shown.update(step, completed=min(done + under_way, total), description=description)
                if settled:
                    continue
                if reason and waiting:
                    report.stopped = reason
                    report.leave("waiting")
                    return
                await asyncio.sleep(service.looks_every)

    def end(self, remark: str = "", **fields: Any) -> None:
        """Print the report and end the command with its exit code."""
        report = self.report
        if self.as_json:
            print_json({"workspace": self.target.workspace, **fields, **report.body()})
        else:
            report.show()
            output().print(f"{report}. {self.target}{remark}", soft_wrap=True)
        if report.stopped:
            tell_why_it_stopped(report.stopped, self.target, report.counts["waiting"])
        if report.exit_code:
            raise typer.Exit(report.exit_code)


def tell_why_it_stopped(reason: str, target: "Target", count: int = 0) -> None:
    """Say why indexing stopped, and that the documents wait in the queue."""
    notices().print(f"error: {printable(reason)}", soft_wrap=True)
    tell_what_waits(count, target)


def tell_what_waits(count: int, target: "Target") -> None:
    """Say who will index the `count` documents that wait in the queue; 0 stands for an unknown number."""
    who = "the service" if target.address else "`cragside worker`, or a running `cragside serve`,"
    what = {0: "unfinished work waits", 1: "1 document waits"}.get(count, f"{count} documents wait")
    notices().print(f"Nothing is lost: {what} in the queue, and {who} continues it.", soft_wrap=True)


async def until_idle(service: "Service", *, look_on: bool = False, as_json: bool = False) -> str:
    """Process the workspace's queue until it is empty, or with `look_on` only watch it. Returns why it stopped."""
    from cragside.entrypoints.cli.service import no_trouble

    with progress(as_json=as_json).status("Enriching ...") as shown:
        async with nullcontext(no_trouble) if look_on else service.working() as trouble:
            while True:
                reason, stats = trouble(), await service.stats()
                left = stats["queue"]["pending"] + stats["queue"]["processing"]
                if not left:
                    return ""
                if reason:
                    return reason
                shown.update(f"Enriching: {left} tasks left, {stats['totals']['enriched']} passages enriched ...")
                await asyncio.sleep(service.looks_every)


async def _each(items: Iterable[FoundItem]) -> AsyncGenerator[FoundItem]:
    for item in items:
        yield item


@contextmanager
def _bar(*, as_json: bool) -> Iterator["Progress"]:
    """Show a progress bar on standard error, if a person watches."""
    from rich.progress import Progress

    console = progress(as_json=as_json)
    with Progress(console=console, transient=True, disable=console.quiet) as shown:
        yield shown


class _Sending:
    """Shows how many files are sent, their size, and the file that is read now."""

    def __init__(self, shown: "Progress", found: Sequence[FoundItem] | None) -> None:
        self._shown = shown
        self._all = "" if found is None else f" of {len(found)}"
        # Nobody sees the sizes of a mute bar, so the files are not asked for them.
        self._bytes = 0 if shown.disable else sum(map(_size, found or ()))
        self._files = self._read = 0
        self._step: TaskID = shown.add_task("", total=self._bytes or None)
        self._show()

    def begin(self, item: FoundItem) -> None:
        """Show the next file. Reading it may last, as OCR does."""
        name = printable(item.name)
        self._show(f": {name if len(name) <= _LONGEST_NAME else f'…{name[1 - _LONGEST_NAME :]}'}")

    def end(self, offer: Offer | Refused) -> None:
        """Count a file that is sent or refused."""
        self._files += 1
        self._read += len(offer.content or b"") if isinstance(offer, Offer) else 0
        self._show()

    def close(self) -> None:
        """Take the line away."""
        self._shown.remove_task(self._step)

    def _show(self, name: str = "") -> None:
        from rich.filesize import decimal

        size = f"{decimal(self._read)} of {decimal(self._bytes)}" if self._bytes else decimal(self._read)
        description = f"Taking in: {self._files}{self._all} files, {size}{name}"
        self._shown.update(self._step, completed=self._read, description=description)


def _size(item: Any) -> int:
    with suppress(OSError):
        return item.path.stat().st_size if isinstance(item, FoundFile) else 0
    return 0
