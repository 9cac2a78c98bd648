"""Compares folders with the documents that came from them."""

import asyncio
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cragside.composition.files import FoundFile, Refused, TextDigests, find_files, is_empty, path_of, root_of
from cragside.domain.errors import ValidationError
from cragside.domain.syncing import FileState, KnownDocument, Move, Plan, plan, removes_much
from cragside.entrypoints.cli.progress import IndexingProgress
from cragside.entrypoints.cli.terminal import printable

if TYPE_CHECKING:
    from cragside.entrypoints.cli.service import Service

# `ingest --prune` reads no larger files to find out whether they were emptied.
_SMALL = 64 * 1024


@dataclass(frozen=True)
class Loss:
    """How many of a folder's documents would be removed."""

    folder: str
    removed: int
    known: int
    emptied: bool = False

    def __str__(self) -> str:
        why = "gone or empty" if self.emptied else "gone"
        return (
            f"{self.removed} of {self.known} documents below {self.folder} would be removed, as their files are {why}"
        )


@dataclass
class Comparison:
    """The plan, its files by source, the files that cannot be read, and the removals that need consent.

    `unfinished`: sources of unchanged documents that are not fully indexed. `ids`: the documents' ids by source.
    `emptied`: sources of documents whose files have no text any more. `folders`: the prefix of the sources of each
    folder.
    """

    plan: Plan
    files: Mapping[str, FoundFile]
    refused: Sequence[Refused]
    losses: Sequence[Loss]
    unfinished: frozenset[str] = frozenset()
    ids: Mapping[str, str] = field(default_factory=dict)
    emptied: frozenset[str] = frozenset()
    folders: Sequence[str] = ()

    @property
    def failing(self) -> list[Refused]:
        """The files that should be readable and are not."""
        return [each for each in self.refused if not each.skipped]

    def earlier_name(self, move: Move) -> str:
        """The former path of a moved file, relative to its folder."""
        source = move.document.source
        inside = [root for root in self.folders if source.startswith(f"{root}/")]
        return source.removeprefix(f"{max(inside, key=len)}/") if inside else source


async def compare(
    service: "Service",
    folders: Sequence[Path],
    digests: TextDigests,
    *,
    keep_emptied: bool = False,
    tell: Callable[[int, int], object] | None = None,
) -> Comparison:
    """Compare folders with the documents that came from below them. A folder may be missing.

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

    states, refused = list[FileState](), list[Refused]()
    for number, item in enumerate(found):
        if tell:
            tell(number, len(found))
        digest = await digests.of(item, is_stored) if isinstance(item, FoundFile) else item
        if isinstance(digest, Refused):
            refused.append(digest)
        elif isinstance(item, FoundFile):
            states.append(FileState(item.source, item.name, digest))
    # Asked after reading, which may take hours: others may have moved documents meanwhile.
    below = await _below(service, folders)
    return await _compared(service, below, states, found, refused, keep_emptied=keep_emptied)


async def lost(
    service: "Service", folders: Sequence[Path], found: Iterable[object], digests: TextDigests
) -> Comparison:
    """Plan removals alone. To find emptied files, it reads only small files that have documents."""
    below = await _below(service, folders)
    known = {document.source for documents in below.values() for document in documents}
    items = [item for item in found if isinstance(item, FoundFile | Refused)]
    states, refused = list[FileState](), [item for item in items if isinstance(item, Refused)]
    for item in items:
        if isinstance(item, FoundFile):
            read = item.source in known and await asyncio.to_thread(_size, item.path) <= _SMALL
            digest = await digests.of(item) if read else ""
            if isinstance(digest, Refused) and is_empty(digest):
                refused.append(digest)
            else:
                states.append(FileState(item.source, item.name, ""))
    return await _compared(service, below, states, items, refused)


async def _below(service: "Service", folders: Sequence[Path]) -> dict[str, list[IndexingProgress]]:
    """The documents that came from below each folder, by the prefix of their sources."""
    return {root: await service.below(root) for root in dict.fromkeys(map(root_of, folders))}


async def _compared(
    service: "Service",
    below: Mapping[str, Sequence[IndexingProgress]],
    states: Sequence[FileState],
    found: Sequence[FoundFile | Refused],
    refused: Sequence[Refused],
    *,
    keep_emptied: bool = False,
) -> Comparison:
    known = {each.id: each for documents in below.values() for each in documents}
    files = {item.source: item for item in found if isinstance(item, FoundFile)}
    documents = [KnownDocument(each.id, each.source, each.name, each.content_hash) for each in known.values()]
    ids = {each.source: each.id for each in documents}
    empty = {each.source for each in refused if is_empty(each)}
    emptied = frozenset() if keep_emptied else frozenset(empty & ids.keys())
    kept = await asyncio.to_thread(_kept, [each.source for each in documents], files, refused)
    made = plan(states, documents, kept=(kept | empty) - emptied)
    refusals = [_with_remedy(each, service, ids) for each in refused if each.source not in emptied]
    unfinished = frozenset(each.source for each in known.values() if not each.settled or each.status == "failed")
    losses = _losses(made.removed, below, emptied)
    return Comparison(made, files, refusals, losses, unfinished, ids, emptied, tuple(below))


def _with_remedy(refused: Refused, service: "Service", ids: Mapping[str, str]) -> Refused:
    """Add to the reason how to remove the document of this file, if there is one."""
    if refused.source not in ids:
        return refused
    way = "cragside sync without --watch" if is_empty(refused) else service.removal(ids[refused.source])
    return replace(refused, reason=f"{refused.reason}; its earlier text is kept. To remove it: {way}")


def is_gone(folder: Path) -> bool:
    """Whether the folder does not exist. Raises `ValidationError` when it cannot be read."""
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


def _kept(sources: Sequence[str], files: Mapping[str, FoundFile], refused: Sequence[Refused]) -> set[str]:
    """The sources whose file exists, but was skipped or cannot be read now."""
    unread = {item.source for item in refused if item.source and not item.skipped}
    spelt_alike = {source.casefold() for source in files}

    def stays(source: str) -> bool:
        if source in unread or any(parent.as_posix() in unread for parent in Path(source).parents):
            return True
        # A file system that takes A.md and a.md for one says that the old name of a renamed file is still there.
        path = path_of(source)
        return source.casefold() not in spelt_alike and os.path.lexists(path) and not os.path.isdir(path)

    return {source for source in sources if stays(source)}


def _losses(
    removed: Sequence[KnownDocument], below: Mapping[str, Sequence[IndexingProgress]], emptied: Collection[str]
) -> list[Loss]:
    ids = {document.id for document in removed}
    counted = ((root, sum(each.id in ids for each in documents), len(documents)) for root, documents in below.items())
    some = any(document.source in emptied for document in removed)
    return [Loss(root or "/", gone, known, some) for root, gone, known in counted if removes_much(gone, known)]
