"""Plans a run: what to send, to move and to remove, and which removals need consent."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cragside.composition.files import FoundFile, Refused, TextDigests, find_files, is_empty, path_of, root_of
from cragside.domain.errors import ValidationError
from cragside.domain.syncing import FileState, KnownDocument, Move, Plan, plan, removes_much
from cragside.entrypoints.cli.offers import IndexingProgress
from cragside.entrypoints.cli.report import FoundItem
from cragside.entrypoints.cli.terminal import output, printable

if TYPE_CHECKING:
    from cragside.entrypoints.cli.service import Service

# Returns the digest of a file's text, or why the file cannot be used.
Read = Callable[[FoundFile], Awaitable[str | Refused]]
_Below = Mapping[str, Sequence[IndexingProgress]]

# `ingest --prune` reads no larger files to find out whether they were emptied.
_SMALL = 64 * 1024
_VERBS = ("add", "change", "move", "remove")


@dataclass(frozen=True)
class Loss:
    """A removal that needs consent: `removed` of the `known` documents of a folder."""

    folder: str
    removed: int
    known: int
    emptied: bool = False

    def __str__(self) -> str:
        why = "gone or empty" if self.emptied else "gone"
        return (
            f"{self.removed} of {self.known} documents below {self.folder} would be removed, as their files are {why}"
        )


@dataclass(frozen=True)
class RunPlan:
    """The plan of a run. `wanted` has what to send and what is refused, in the order in which it was found.

    `changes` is empty if nothing was compared. `losses` are the removals that need consent. `ids` has the documents'
    ids by source, `emptied` the sources of documents whose files have no text any more, and `folders` the prefix of
    the sources of each folder.
    """

    wanted: Sequence[FoundItem]
    changes: Plan = field(default_factory=Plan)
    losses: Sequence[Loss] = ()
    ids: Mapping[str, str] = field(default_factory=dict)
    emptied: frozenset[str] = frozenset()
    folders: Sequence[str] = ()

    @property
    def refused(self) -> list[Refused]:
        """Return the files that are not read."""
        return [each for each in self.wanted if isinstance(each, Refused)]

    @property
    def fails(self) -> bool:
        """Tell if a file could not be read that should be."""
        return any(not each.skipped for each in self.refused)

    def without_removals(self) -> "RunPlan":
        """Return the plan with every document kept."""
        return replace(self, changes=self.changes.without_removals())

    def earlier_name(self, move: Move) -> str:
        """Return the former path of a moved file, relative to its folder."""
        source = move.document.source
        inside = [root for root in self.folders if source.startswith(f"{root}/")]
        return source.removeprefix(f"{max(inside, key=len)}/") if inside else source

    def show(self) -> None:
        """Print a line for each difference, and the counts."""
        console, made = output(), self.changes
        lines = [("add", file.name) for file in made.added]
        lines += [("change", file.name) for file in made.changed]
        lines += [("move", f"{self.earlier_name(move)} -> {move.to.name}") for move in made.moved]
        lines += [("remove", document.name) for document in made.removed]
        lines += [("skip" if each.skipped else "fail", f"{each.name}  ({each.reason})") for each in self.refused]
        for what, name in lines:
            console.print(f"{what:<10}{printable(name)}", soft_wrap=True)
        counts = (made.added, made.changed, made.moved, made.removed)
        changes = ", ".join(f"{verb} {len(some)}" for verb, some in zip(_VERBS, counts, strict=True) if some)
        failing = sum(not each.skipped for each in self.refused)
        summary = f"Would {changes or 'do nothing'};{f' {failing} would fail;' if failing else ''}"
        console.print(f"{summary} {len(made.unchanged)} unchanged. Nothing was done.", soft_wrap=True)

    def body(self) -> dict[str, Any]:
        """Return the plan as JSON."""
        made = self.changes
        return {
            "added": [file.source for file in made.added],
            "changed": [file.source for file in made.changed],
            "moved": [{"from": move.document.source, "to": move.to.source} for move in made.moved],
            "removed": [document.source for document in made.removed],
            "unchanged": [file.source for file in made.unchanged],
            "refused": [{"name": each.name, "reason": each.reason} for each in self.refused],
            "needs_consent": bool(self.losses),
        }


async def plan_sync(
    service: "Service",
    folders: Sequence[Path],
    digests: TextDigests,
    *,
    keep_emptied: bool = False,
    tell: Callable[[int, int], object] | None = None,
) -> RunPlan:
    """Plan by comparing folders with the documents that came from below them. A folder may be missing.

    The document of an emptied file is to be removed, unless `keep_emptied` is set. `tell` gets the number of files that
    are read, and of all.
    """
    found = await asyncio.to_thread(lambda: list(find_files(folder for folder in folders if not is_gone(folder))))
    stored: list[frozenset[str]] = []

    async def is_stored(digest: str) -> bool:
        if not stored:  # asked only if an earlier process has read files
            below = await _below(service, folders)
            stored.append(frozenset(each.content_hash for documents in below.values() for each in documents))
        return digest in stored[0]

    async def read(file: FoundFile) -> str | Refused:
        return await digests.of(file, is_stored)

    return await _plan(service, folders, found, read, keep_emptied=keep_emptied, tell=tell)


async def plan_pruning(
    service: "Service", folders: Sequence[Path], found: Sequence[FoundItem], digests: TextDigests
) -> RunPlan:
    """Plan to send everything, and to remove the documents of missing and empty files.

    Only small files that have documents are read, because they may have been emptied.
    """
    known = {document.source for documents in (await _below(service, folders)).values() for document in documents}

    async def read(file: FoundFile) -> str | Refused:
        if file.source in known and await asyncio.to_thread(_size, file.path) <= _SMALL:
            digest = await digests.of(file)
            if isinstance(digest, Refused) and is_empty(digest):
                return digest
        return f"unread {file.source}"  # no text has this digest

    return await _plan(service, folders, found, read)


async def _plan(
    service: "Service",
    folders: Sequence[Path],
    found: Sequence[FoundItem],
    read: Read,
    *,
    keep_emptied: bool = False,
    tell: Callable[[int, int], object] | None = None,
) -> RunPlan:
    states, items = list[FileState](), list[FoundItem]()
    for number, item in enumerate(found):
        if tell:
            tell(number, len(found))
        digest = await read(item) if isinstance(item, FoundFile) else ""
        if isinstance(item, FoundFile) and isinstance(digest, str):
            states.append(FileState(item.source, item.name, digest))
        items.append(digest if isinstance(digest, Refused) else item)
    # Asked after reading, which may take hours: others may have moved documents meanwhile.
    below = await _below(service, folders)
    known = {each.id: each for documents in below.values() for each in documents}
    documents = [KnownDocument(each.id, each.source, each.name, each.content_hash) for each in known.values()]
    ids = {each.source: each.id for each in documents}
    refused = [item for item in items if isinstance(item, Refused)]
    empty = {each.source for each in refused if is_empty(each)}
    emptied = frozenset() if keep_emptied else frozenset(empty & ids.keys())
    there = {item.source for item in found if isinstance(item, FoundFile)}
    kept = await asyncio.to_thread(_kept, list(ids), there, refused)
    changes = plan(states, documents, kept=(kept | empty) - emptied)
    unfinished = {each.source for each in known.values() if not each.settled or each.status == "failed"}
    done = {state.source for state in changes.unchanged} - unfinished | {move.to.source for move in changes.moved}
    wanted = [_with_remedy(item, service, ids) for item in items if _source(item) not in done | emptied]
    return RunPlan(wanted, changes, _losses(changes.removed, below, emptied), ids, emptied, tuple(below))


async def _below(service: "Service", folders: Sequence[Path]) -> _Below:
    """Return the documents that came from below each folder, by the prefix of their sources."""
    return {root: await service.below(root) for root in dict.fromkeys(map(root_of, folders))}


def _source(item: FoundItem) -> str:
    return item.source or item.name


def _with_remedy(item: FoundItem, service: "Service", ids: Mapping[str, str]) -> FoundItem:
    """Add to the reason of a refusal how to remove the document of this file, if there is one."""
    if not isinstance(item, Refused) or item.source not in ids:
        return item
    way = "cragside sync without --watch" if is_empty(item) else service.removal(ids[item.source])
    return replace(item, reason=f"{item.reason}; its earlier text is kept. To remove it: {way}")


def is_gone(folder: Path) -> bool:
    """Tell if the folder does not exist. Raises `ValidationError` when it cannot be read."""
    try:
        folder.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError as error:
        raise ValidationError(
            f"{printable(str(folder))} cannot be read: {error.strerror}. Nothing was done."
        ) from error
    return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _kept(sources: Sequence[str], there: Collection[str], refused: Sequence[Refused]) -> set[str]:
    """Return the sources whose file exists, but was skipped or cannot be read now."""
    unread = {item.source for item in refused if item.source and not item.skipped}
    spelt_alike = {source.casefold() for source in there}

    def stays(source: str) -> bool:
        if source in unread or any(parent.as_posix() in unread for parent in Path(source).parents):
            return True
        # A file system that takes A.md and a.md for one says that the old name of a renamed file is still there.
        path = path_of(source)
        return source.casefold() not in spelt_alike and os.path.lexists(path) and not os.path.isdir(path)

    return {source for source in sources if stays(source)}


def _losses(removed: Sequence[KnownDocument], below: _Below, emptied: Collection[str]) -> list[Loss]:
    ids = {document.id for document in removed}
    counted = ((root, sum(each.id in ids for each in documents), len(documents)) for root, documents in below.items())
    some = any(document.source in emptied for document in removed)
    return [Loss(root or "/", gone, known, some) for root, gone, known in counted if removes_much(gone, known)]
