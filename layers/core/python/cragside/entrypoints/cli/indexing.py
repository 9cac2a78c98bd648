"""Indexing at a terminal: what `ingest`, `index` and `bake` have in common."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cragside.adapters.documents.folders import FoundFile, Refused, find_files, read_file
from cragside.adapters.documents.kinds import SUPPORTED
from cragside.domain.errors import (
    ConfigurationError,
    CragsideError,
    DeadlineExceeded,
    Forbidden,
    NotFound,
    ProcessingError,
    ServiceUnavailable,
    Unauthorized,
    ValidationError,
)
from cragside.domain.naming import told_apart
from cragside.entrypoints.cli import exits
from cragside.entrypoints.cli.api import named_workspace
from cragside.entrypoints.cli.earlier import earlier_body, known_by_name_alone, tell_earlier
from cragside.entrypoints.cli.places import Offer, Options, Place, Progress, Taken, at_place
from cragside.entrypoints.cli.session import place_of
from cragside.entrypoints.cli.terminal import notices, output, print_json, printable

if TYPE_CHECKING:
    from cragside.entrypoints.cli.session import Session
    from cragside.ports.rag_repository import KnowledgeStatus
    from cragside.settings import Settings

Paths = Annotated[
    list[Path], typer.Argument(metavar="PATH...", exists=True, readable=False, help="Files and folders to index.")
]

Found = FoundFile | Refused | Offer
Remove = Callable[["Report"], Awaitable[None]]
Prune = Callable[[Place, Sequence[Found]], Awaitable[tuple[Sequence[Found], Remove]]]

# The first that are not finished tell how far all are: they are indexed in their order.
_LOOKED_AT = 50
_STATUSES = ("indexed", "updated", "unchanged", "accepted", "waiting", "moved", "removed", "failed", "skipped")
_TOLD_AS = {"new": "indexed", "changed": "updated", "unchanged": "unchanged"}
# They end a run; anything else is about one document.
_ENDING = (ConfigurationError, DeadlineExceeded, ServiceUnavailable, Unauthorized)


@dataclass(frozen=True, slots=True)
class Line:
    """What became of something that was brought."""

    name: str
    status: str
    reason: str = ""
    id: str = ""
    passages: int = 0
    source: str = ""

    @property
    def remark(self) -> str:
        """What is said of it besides its status."""
        if self.reason or not self.passages or self.status == "unchanged":
            return self.reason
        return f"{self.passages} passage" + ("" if self.passages == 1 else "s")


@dataclass(frozen=True, slots=True)
class Run:
    """How, and by whom, things are indexed: by this process unless an address is given.

    `prune` is asked first which documents have lost their files. It returns what is left to index, and what removes
    those documents, last of all.
    With `look_for_earlier` documents of earlier versions that stay beside those of files are told of.
    With `count` what the workspace then holds is counted, for which the whole store is opened.
    """

    options: Options = field(default_factory=Options)
    address: str | None = None
    token: str | None = None
    wait: bool = True
    count: bool = False
    prune: "Prune | None" = None
    look_for_earlier: bool = False


@dataclass
class Report:
    """What became of everything. `stopped` says why the work ended before all was done.

    `found` is what there is to take in, where that is known beforehand, in the order of its lines; `complete` says that
    all of it was. `earlier` are documents of an earlier version to tell of, None where nobody has looked.
    """

    lines: list[Line] = field(default_factory=list)
    taken: dict[str, tuple[int, Taken]] = field(default_factory=dict)
    stopped: str = ""
    found: Sequence[Found] | None = None
    complete: bool = False
    earlier: Sequence[Progress] | None = None

    def add(self, line: Line) -> None:
        """Take a line in."""
        self.lines.append(line)

    def refuse(self, refused: Refused, document_id: str = "") -> None:
        """Take note of what is not read, and of the document that it has from before."""
        status = "skipped" if refused.skipped else "failed"
        self.add(Line(refused.name, status, refused.reason, document_id, source=refused.source))

    def take(self, name: str, taken: Taken) -> None:
        """Take note of an offer that was accepted; what becomes of it is told by `settle`."""
        status = _TOLD_AS.get(taken.outcome, taken.outcome)
        progress = taken.progress
        self.lines.append(Line(name, status, "", progress.id, progress.passages, progress.source))
        if not taken.progress.settled:
            self.taken[taken.progress.id] = len(self.lines) - 1, taken
        elif taken.progress.status == "failed":
            self.settle(len(self.lines) - 1, taken.progress)

    def settle(self, number: int, progress: Progress | None) -> None:
        """Say what became of a document in the end; None for one that was deleted meanwhile."""
        line = self.lines[number]
        if progress is None:
            self.lines[number] = replace(line, status="failed", reason="was deleted meanwhile", passages=0)
        elif progress.status == "failed":
            found = " (its text can be found)" if progress.searchable else ""
            reason = f"{progress.error or 'could not be indexed'}{found}"
            self.lines[number] = replace(line, status="failed", reason=reason, passages=progress.passages)

    def leave(self, waiting: Iterable[tuple[int, Progress]], status: str) -> None:
        """Say of documents that they are not done."""
        for number, progress in waiting:
            reason = "can be found; the rest follows" if progress.searchable and status == "waiting" else ""
            line = self.lines[number]
            self.lines[number] = replace(line, status=status, reason=reason, passages=progress.passages)

    @property
    def counts(self) -> Counter[str]:
        """How many there are of each status."""
        return Counter(line.status for line in self.lines)

    @property
    def exit_code(self) -> int:
        """What stands for it all."""
        if self.stopped:
            return exits.UNAVAILABLE
        return exits.FAILED if self.counts["failed"] else exits.OK

    def made(self) -> list[str]:
        """The sources of documents that were not there before."""
        new = {identifier for identifier, (_, taken) in self.taken.items() if taken.outcome == "new"}
        settled = {line.id for line in self.lines if line.status == "indexed" and line.id not in self.taken}
        return [line.source for line in self.lines if line.id in new | settled]

    def show(self) -> None:
        """A line for each, on standard output. Files of one name are told apart by their folders."""
        console = output()
        sources: dict[str, set[str]] = {}
        for line in self.lines:
            sources.setdefault(line.name, set()).add(line.source or line.name)
        labels = {name: told_apart(name, known, taken=sources.keys().__and__) for name, known in sources.items()}
        for line in self.lines:
            label = labels[line.name][line.source or line.name]
            style = {"failed": "red", "skipped": "dim", "waiting": "yellow"}.get(line.status)
            note = f"  ({printable(line.remark)})" if line.remark else ""
            console.print(f"{line.status:<10}{printable(label)}{note}", style=style, soft_wrap=True)

    def body(self) -> dict[str, Any]:
        """The same for programs."""
        documents = [
            {
                "name": line.name,
                "source": line.source or None,
                "id": line.id or None,
                "status": line.status,
                "passages": line.passages,
                "reason": line.reason,
            }
            for line in self.lines
        ]
        counts = {status: count for status in _STATUSES if (count := self.counts[status])}
        told = {} if self.earlier is None else earlier_body(self.earlier)
        return {"documents": documents, "counts": counts, "stopped": self.stopped or None, **told}

    def __str__(self) -> str:
        counts = self.counts
        return ", ".join(f"{counts[status]} {status}" for status in _STATUSES if counts[status]) or "nothing to do"


def found_in(paths: Sequence[Path], urls: Sequence[str] = ()) -> list[Found]:
    """What there is to index. Raises `ValidationError` when that is nothing."""
    found: list[Found] = [*find_files(paths), *map(Offer, dict.fromkeys(urls))]
    if all(isinstance(item, Refused) and item.skipped for item in found):
        raise ValidationError(f"There is no file to index; supported are {SUPPORTED}.")
    return found


async def offers_of(found: Sequence[Found], max_bytes: int) -> AsyncGenerator[Offer | Refused]:
    """What was found, each file read when it is its turn."""
    for item in found:
        if isinstance(item, FoundFile):
            content = await asyncio.to_thread(read_file, item, max_bytes)
            yield content if isinstance(content, Refused) else Offer(item.name, content, source=item.source)
        else:
            yield item


async def index(
    place: Place, offers: AsyncGenerator[Offer | Refused], options: Options, report: Report, *, wait: bool = True
) -> None:
    """Take the offers in and, unless told not to wait, see them through, with progress on standard error."""
    with _bar() as bar:
        step = bar.add_task("Taking in", total=None)
        async with aclosing(offers) as brought:
            async for offer in brought:
                await _take(place, offer, options, report)
                bar.update(step, completed=len(report.lines), description=f"Taking in ({len(report.lines)})")
        bar.remove_task(step)
        report.complete = True
        if wait and report.taken:
            await _follow(place, report, bar)
        elif not wait:
            report.leave([(number, taken.progress) for number, taken in report.taken.values()], "accepted")


async def _take(place: Place, offer: Offer | Refused, options: Options, report: Report) -> None:
    if isinstance(offer, Refused):
        report.refuse(offer)
        return
    try:
        report.take(offer.name, await place.take(offer, options))
    except _ENDING:
        raise
    except (Forbidden, NotFound, ProcessingError, ValidationError) as error:
        if isinstance(error, Forbidden) and "limit" not in error.details:
            raise
        reason = error.message if offer.content is None else str(error.details.get("reason", error.message))
        report.add(Line(offer.name, "failed", reason, source=offer.source))


async def _follow(place: Place, report: Report, bar: Any) -> None:
    waiting = {identifier: (number, taken.progress) for identifier, (number, taken) in report.taken.items()}
    total = sum(progress.steps for _, progress in waiting.values())
    step = bar.add_task("Indexing", total=total)
    done = 0
    async with place.working() as trouble:
        while waiting:
            said = trouble()
            settled = 0
            for identifier in list(islice(waiting, _LOOKED_AT)):
                number, before = waiting[identifier]
                progress = await place.progress(identifier)
                if progress is not None and not progress.settled:
                    waiting[identifier] = number, progress
                    continue
                report.settle(number, progress)
                done += before.steps
                settled += 1
                del waiting[identifier]
            under_way = sum(progress.done for _, progress in islice(waiting.values(), _LOOKED_AT))
            bar.update(step, completed=min(done + under_way, total))
            if settled:
                continue
            if said and waiting:
                report.stopped = said
                report.leave(waiting.values(), "waiting")
                return
            await asyncio.sleep(place.looks_every)


async def until_idle(place: Place, *, look_on: bool = False) -> str:
    """Have done what waits, or only look on; why nothing goes on, "" when the queue has nothing of the workspace."""
    with notices().status("Enriching ...") as shown:
        async with nullcontext(_nothing_said) if look_on else place.working() as trouble:
            while True:
                said, stats = trouble(), await place.stats()
                left = stats["queue"]["pending"] + stats["queue"]["processing"]
                if not left:
                    return ""
                if said:
                    return said
                shown.update(f"Enriching: {left} tasks left, {stats['totals']['enriched']} passages enriched ...")
                await asyncio.sleep(place.looks_every)


def _nothing_said() -> str:
    return ""


@contextmanager
def _bar() -> Iterator[Any]:
    """A progress bar on standard error, where that is a terminal."""
    from rich.progress import Progress as Bar

    console = notices()
    with Bar(console=console, transient=True, disable=not console.is_terminal) as bar:
        yield bar


@contextmanager
def nothing_is_lost(report: Report, *, address: str | None) -> Iterator[None]:
    """Say so, and what was not taken in, when a run ends early, by Ctrl-C or because something is down."""
    try:
        yield
    except (KeyboardInterrupt, CragsideError):
        if report.taken:
            tell_what_waits(len(report.taken), address=address)
        if report.lines and not report.complete:
            _tell_what_is_left(report)
        raise


def _tell_what_is_left(report: Report) -> None:
    rest = "The rest was"
    if report.found is not None:
        left = sum(not isinstance(item, Refused) for item in report.found[len(report.lines) :])
        rest = "1 more was" if left == 1 else f"{left} more were"
    notices().print(f"{rest} not taken in: run the same command again.", soft_wrap=True)


def tell_why_it_stopped(reason: str, count: int = 0, *, address: str | None) -> None:
    """Say what keeps documents from being done, and that they wait."""
    notices().print(f"error: {printable(reason)}", soft_wrap=True)
    tell_what_waits(count, address=address)


def tell_what_waits(count: int = 0, *, address: str | None) -> None:
    """Say what becomes of documents that were taken in and are not done; 0 is of any number."""
    who = "the service" if address else "`cragside worker`, or a running `cragside serve`,"
    what = {0: "what is not done waits", 1: "1 document waits"}.get(count, f"{count} documents wait")
    notices().print(f"Nothing is lost: {what} in the queue, and {who} goes on with it.", soft_wrap=True)


def index_found(
    session: "Session", settings: "Settings", found: Sequence[Found], run: Run, report: Report
) -> "KnowledgeStatus | None":
    """Index what was found; whatever was opened is closed when this returns.

    The status of the workspace is None when nothing could be used, at a service, and unless the run is to count.
    """
    report.found = found
    if all(isinstance(item, Refused) for item in found) and not run.prune:
        for item in found:
            if isinstance(item, Refused):
                report.refuse(item)
        return None

    async def work(place: Place) -> "KnowledgeStatus | None":
        left, remove = await run.prune(place, found) if run.prune else (found, None)
        report.found = left
        await index(place, offers_of(left, settings.max_file_bytes), run.options, report, wait=run.wait)
        if remove:
            await remove(report)
        if run.look_for_earlier:
            beside = None if run.prune else report.made()
            report.earlier = await known_by_name_alone(place, beside=beside)
        return await place.status() if run.count else None

    return at_place(session, settings, work, address=run.address, token=run.token)


def where_of(settings: "Settings", address: str | None) -> str:
    """The workspace, where it is known, and its place."""
    place, workspace = printable(address or place_of(settings)), named_workspace(settings, address)
    return f"Workspace {workspace} in {place}" if workspace else f"In {place}"


def end(report: Report, summary: str, *, as_json: bool, address: str | None, **told: Any) -> None:
    """Show what became of everything and end the command with the exit code for it."""
    if as_json:
        print_json({**told, **report.body()})
    else:
        report.show()
        output().print(f"{report}. {summary}", soft_wrap=True)
        tell_earlier(report.earlier or ())
    if report.stopped:
        tell_why_it_stopped(report.stopped, report.counts["waiting"], address=address)
    if report.exit_code:
        raise typer.Exit(report.exit_code)
