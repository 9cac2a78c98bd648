"""Reports what became of the documents that a command sent."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import PurePath
from typing import Any

from cragside.composition.files import EMPTY, FoundFile, Refused
from cragside.domain.faults import counted
from cragside.domain.names import distinct_labels
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.offers import IndexingProgress, Offer
from cragside.entrypoints.cli.terminal import output, printable

_STATUSES = ("indexed", "updated", "unchanged", "accepted", "waiting", "moved", "removed", "failed", "skipped")
_BY_OUTCOME = {"new": "indexed", "changed": "updated"}
_MOST_KINDS = 8
_LONGEST_REASON = 60
_UNSUPPORTED = "not supported"
_TOO_LARGE = " bytes, the limit is "

FoundItem = FoundFile | Refused | Offer


@dataclass(frozen=True, slots=True)
class Line:
    """The outcome of one document. `unread` names the parts of its file that could not be read."""

    name: str
    source: str
    id: str
    status: str
    passages: int = 0
    reason: str = ""
    unread: str = ""

    @property
    def remark(self) -> str:
        """Return the remark behind the status."""
        detail = self.reason
        if not detail and self.passages and self.status != "unchanged":
            detail = counted(self.passages, "passage")
        return "; ".join(filter(None, (detail, self.unread)))


@dataclass
class Report:
    """The outcome of a run. `stopped` says why it ended early, "" if it did not.

    `waiting` has the line number and the last progress of each unfinished document, by its id. `unsent` counts the
    documents that are still to be sent; None stands for an unknown number.
    """

    lines: list[Line] = field(default_factory=list)
    waiting: dict[str, tuple[int, IndexingProgress]] = field(default_factory=dict)
    unsent: int | None = None
    stopped: str = ""

    def add(self, name: str, status: str, reason: str = "", *, document_id: str = "", source: str = "") -> None:
        """Add a line."""
        self.lines.append(Line(name, source, document_id, status, reason=reason))

    def refuse(self, refused: Refused, document_id: str = "") -> None:
        """Add a line for a file that is not read; `document_id` is its document from before."""
        status = "skipped" if refused.skipped else "failed"
        self.add(refused.name, status, refused.reason, document_id=document_id, source=refused.source)

    def take(self, name: str, taken: IndexingProgress) -> None:
        """Add a line for an accepted document. `settle` completes the line of an unfinished one."""
        status = _BY_OUTCOME.get(taken.outcome, taken.outcome)
        self.lines.append(Line(name, taken.source, taken.id, status, taken.passages, unread=taken.unread))
        self.waiting[taken.id] = len(self.lines) - 1, taken
        if taken.settled:
            self.settle(taken.id, taken)

    def settle(self, identifier: str, progress: IndexingProgress | None) -> None:
        """Set the final outcome of a document; None means that it was deleted meanwhile."""
        number, _ = self.waiting.pop(identifier)
        if progress is None:
            self._change(number, status="failed", reason="was deleted meanwhile", passages=0)
        elif progress.status == "failed":
            found = " (its text can be found)" if progress.searchable else ""
            reason = f"{progress.error or 'could not be indexed'}{found}"
            self._change(number, status="failed", reason=reason, passages=progress.passages)

    def leave(self, status: str) -> None:
        """Set the status of unfinished documents."""
        for number, progress in self.waiting.values():
            reason = "can be found; the rest follows" if progress.searchable else "cannot be found yet"
            self._change(number, status=status, reason=reason, passages=progress.passages)

    def _change(self, number: int, **fields: Any) -> None:
        self.lines[number] = replace(self.lines[number], **fields)

    @property
    def counts(self) -> Counter[str]:
        """Return the number of lines for each status."""
        return Counter(line.status for line in self.lines)

    @property
    def exit_code(self) -> int:
        """Return the exit code of the run."""
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
            counts = printable(count_by_kind(skipped))
            console.print(f"skipped   {counts}; --json lists them", style="dim", soft_wrap=True)

    def body(self) -> dict[str, Any]:
        """Return the report as JSON."""
        documents = [{**asdict(line), "source": line.source or None, "id": line.id or None} for line in self.lines]
        counts = {status: count for status in _STATUSES if (count := self.counts[status])}
        return {"documents": documents, "counts": counts, "stopped": self.stopped or None}

    def __str__(self) -> str:
        counts = self.counts
        return ", ".join(f"{counts[status]} {status}" for status in _STATUSES if counts[status]) or "nothing to do"


def count_by_kind(files: Iterable[tuple[str, str]]) -> str:
    """Count skipped files by kind from their names and reasons: "12 files: 9 .png (not supported), 3 empty"."""
    kinds = Counter(_kind(name, reason) for name, reason in files)
    most = kinds.most_common(_MOST_KINDS)
    counts = [f"{count} {kind}" for kind, count in most]
    if len(kinds) > _MOST_KINDS:
        counts.append(f"{kinds.total() - sum(count for _, count in most)} others")
    return f"{kinds.total()} files: {', '.join(counts)}"


def _kind(name: str, reason: str) -> str:
    if reason == EMPTY:
        return "empty"
    kind = PurePath(name).suffix.lower() or "without an ending"
    if _TOO_LARGE in reason:
        return f"{kind} (too large: see RAG_MAX_FILE_BYTES)"
    if _UNSUPPORTED in reason:
        return f"{kind} ({_UNSUPPORTED})"
    return f"{kind} ({reason})" if len(reason) <= _LONGEST_REASON else kind
