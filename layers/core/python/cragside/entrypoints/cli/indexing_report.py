"""Reports the outcome of each document that a command sent, and what still waits."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from cragside.composition.files import FoundFile, Refused
from cragside.domain.errors import CragsideError
from cragside.domain.faults import counted
from cragside.domain.names import distinct_labels
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.progress import IndexingProgress, Offer, Taken
from cragside.entrypoints.cli.skipped import counted_by_kind
from cragside.entrypoints.cli.terminal import notices, output, printable

FoundItem = FoundFile | Refused | Offer

_STATUSES = ("indexed", "updated", "unchanged", "accepted", "waiting", "moved", "removed", "failed", "skipped")
_TOLD_AS = {"new": "indexed", "changed": "updated", "unchanged": "unchanged"}


@dataclass(frozen=True, slots=True)
class Line:
    """The outcome of one document. `unread` says what of its file was not read."""

    name: str
    status: str
    reason: str = ""
    id: str = ""
    passages: int = 0
    source: str = ""
    unread: str = ""

    @property
    def remark(self) -> str:
        """The remark behind the status."""
        detail = self.reason
        if not detail and self.passages and self.status != "unchanged":
            detail = counted(self.passages, "passage")
        return "; ".join(filter(None, (detail, self.unread)))


@dataclass
class Report:
    """The outcome of a whole run. `stopped` says why it ended early, "" if it did not.

    `found` lists what is to be sent, in the order of the lines, if that is known beforehand. `complete` is set once
    all of it was sent.
    """

    lines: list[Line] = field(default_factory=list)
    taken: dict[str, tuple[int, Taken]] = field(default_factory=dict)
    stopped: str = ""
    found: Sequence[FoundItem] | None = None
    complete: bool = False

    def add(self, line: Line) -> None:
        """Add a line."""
        self.lines.append(line)

    def refuse(self, refused: Refused, document_id: str = "") -> None:
        """Add a line for a file that is not read; `document_id` is its document from before."""
        status = "skipped" if refused.skipped else "failed"
        self.add(Line(refused.name, status, refused.reason, document_id, source=refused.source))

    def take(self, name: str, taken: Taken) -> None:
        """Add a line for an accepted document. If it is unfinished, `settle` completes the line."""
        status = _TOLD_AS.get(taken.outcome, taken.outcome)
        progress = taken.progress
        self.lines.append(Line(name, status, "", progress.id, progress.passages, progress.source, taken.unread))
        if not taken.progress.settled:
            self.taken[taken.progress.id] = len(self.lines) - 1, taken
        elif taken.progress.status == "failed":
            self.settle(len(self.lines) - 1, taken.progress)

    def settle(self, number: int, progress: IndexingProgress | None) -> None:
        """Set the final outcome of a document; None means that it was deleted meanwhile."""
        line = self.lines[number]
        if progress is None:
            self.lines[number] = replace(line, status="failed", reason="was deleted meanwhile", passages=0)
        elif progress.status == "failed":
            found = " (its text can be found)" if progress.searchable else ""
            reason = f"{progress.error or 'could not be indexed'}{found}"
            self.lines[number] = replace(line, status="failed", reason=reason, passages=progress.passages)

    def leave(self, waiting: Iterable[tuple[int, IndexingProgress]], status: str) -> None:
        """Set the status of unfinished documents."""
        for number, progress in waiting:
            reason = "can be found; the rest follows" if progress.searchable and status == "waiting" else ""
            line = self.lines[number]
            self.lines[number] = replace(line, status=status, reason=reason, passages=progress.passages)

    @property
    def counts(self) -> Counter[str]:
        """The number of lines for each status."""
        return Counter(line.status for line in self.lines)

    @property
    def exit_code(self) -> int:
        """The exit code of the run."""
        if self.stopped:
            return exit_codes.UNAVAILABLE
        return exit_codes.FAILED if self.counts["failed"] else exit_codes.OK

    def show(self) -> None:
        """Print the lines, and one for all skipped files. Files that share a name are shown with their folders."""
        console = output()
        sources: dict[str, set[str]] = {}
        for line in self.lines:
            sources.setdefault(line.name, set()).add(line.source or line.name)
        labels = {name: distinct_labels(name, known, taken=sources.keys().__and__) for name, known in sources.items()}
        skipped = [(line.name, line.reason) for line in self.lines if line.status == "skipped"]
        for line in self.lines:
            if line.status == "skipped" and len(skipped) > 1:
                continue
            label = labels[line.name][line.source or line.name]
            style = {"failed": "red", "skipped": "dim", "waiting": "yellow"}.get(line.status)
            style = style or ("yellow" if line.unread else None)
            note = f"  ({printable(line.remark)})" if line.remark else ""
            console.print(f"{line.status:<10}{printable(label)}{note}", style=style, soft_wrap=True)
        if len(skipped) > 1:
            counts = printable(counted_by_kind(skipped))
            console.print(f"skipped   {counts}; --json lists them", style="dim", soft_wrap=True)

    def body(self) -> dict[str, Any]:
        """The report as JSON."""
        documents = [
            {
                "name": line.name,
                "source": line.source or None,
                "id": line.id or None,
                "status": line.status,
                "passages": line.passages,
                "reason": line.reason,
                "unread": line.unread,
            }
            for line in self.lines
        ]
        counts = {status: count for status in _STATUSES if (count := self.counts[status])}
        return {"documents": documents, "counts": counts, "stopped": self.stopped or None}

    def __str__(self) -> str:
        counts = self.counts
        return ", ".join(f"{counts[status]} {status}" for status in _STATUSES if counts[status]) or "nothing to do"


@contextmanager
def nothing_is_lost(report: Report, *, address: str | None) -> Iterator[None]:
    """If a run ends early, say that queued documents are safe and how many were not sent."""
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
    """Say why indexing stopped, and that the documents wait in the queue."""
    notices().print(f"error: {printable(reason)}", soft_wrap=True)
    tell_what_waits(count, address=address)


def tell_what_waits(count: int = 0, *, address: str | None) -> None:
    """Say who will index the `count` documents that wait in the queue; 0 stands for an unknown number."""
    who = "the service" if address else "`cragside worker`, or a running `cragside serve`,"
    what = {0: "unfinished work waits", 1: "1 document waits"}.get(count, f"{count} documents wait")
    notices().print(f"Nothing is lost: {what} in the queue, and {who} continues it.", soft_wrap=True)
