"""The changes that make the knowledge base match a folder."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

# Removing a larger share of a folder's documents needs consent.
_LARGEST_SHARE = 0.1

Item = TypeVar("Item", "FileState", "KnownDocument")


@dataclass(frozen=True, slots=True)
class FileState:
    """A file that was found and read. `digest` is equal for equal texts."""

    source: str
    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """A document that came from a file below the folder."""

    id: str
    source: str
    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class Move:
    """A document whose file has another path now."""

    document: KnownDocument
    to: FileState


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes, each kind in the order of the sources."""

    added: tuple[FileState, ...] = ()
    changed: tuple[FileState, ...] = ()
    moved: tuple[Move, ...] = ()
    removed: tuple[KnownDocument, ...] = ()
    unchanged: tuple[FileState, ...] = ()

    def without_removals(self) -> "Plan":
        """Return the plan with every document kept."""
        return replace(self, removed=())


def plan(files: Sequence[FileState], known: Sequence[KnownDocument], *, kept: Collection[str] = ()) -> Plan:
    """Compare the files of a folder with the documents that came from below it.

    A document whose file is gone is moved to a new file with the same text, or else removed. A document whose source is
    in `kept` stays: its file exists, but is skipped or cannot be read now.
    """
    by_source = {document.source: document for document in known}
    there = {file.source for file in files}
    new = [file for file in _ordered(files) if file.source not in by_source]
    gone = [document for document in _ordered(known) if document.source not in there and document.source not in kept]
    moves = _moves(gone, new)
    moved_ids, moved_to = {move.document.id for move in moves}, {move.to.source for move in moves}
    met = [(file, by_source[file.source]) for file in _ordered(files) if file.source in by_source]
    return Plan(
        added=tuple(file for file in new if file.source not in moved_to),
        changed=tuple(file for file, document in met if file.digest != document.digest),
        moved=tuple(moves),
        removed=tuple(document for document in gone if document.id not in moved_ids),
        unchanged=tuple(file for file, document in met if file.digest == document.digest),
    )


def removes_much(removed: int, known: int) -> bool:
    """Tell if removing `removed` of the `known` documents below a folder needs consent."""
    return removed > 0 and (removed == known or removed > known * _LARGEST_SHARE)


def _moves(gone: Sequence[KnownDocument], new: Sequence[FileState]) -> list[Move]:
    """Return each missing document with a new file of the same text, preferably of the same file name."""
    free: dict[str, list[FileState]] = {}
    for file in new:
        free.setdefault(file.digest, []).append(file)
    found: dict[str, Move] = {}
    for same_name in (True, False):
        for document in gone:
            matching = free.get(document.digest, [])
            to = next((file for file in matching if not same_name or _base(file) == _base(document)), None)
            if to is not None and document.id not in found:
                matching.remove(to)
                found[document.id] = Move(document, to)
    return sorted(found.values(), key=lambda move: move.document.source)


def _base(item: FileState | KnownDocument) -> str:
    return item.source.rpartition("/")[2]


def _ordered(items: Sequence[Item]) -> list[Item]:
    return sorted(items, key=lambda item: item.source)
