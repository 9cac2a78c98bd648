"""Folders and what the knowledge base holds of them: compared, and brought in line."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cragside.adapters.documents.folders import FoundFile, Refused, find_files, path_of, read_file, root_of
from cragside.domain.errors import NotFound, ProcessingError, ValidationError
from cragside.domain.syncing import FileState, KnownDocument, Plan, plan, removes_much
from cragside.entrypoints.cli.earlier import would_take_over
from cragside.entrypoints.cli.indexing import Found, Line, Prune, Report, index, offers_of
from cragside.entrypoints.cli.places import Options, Place, Progress
from cragside.entrypoints.cli.terminal import output, printable

if TYPE_CHECKING:
    from cragside.adapters.documents.loader import FileLoader

_VERBS = ("add", "take over", "change", "move", "remove")


@dataclass
class Contents:
    """The digests of files' texts. A file that has not been touched since is not read again."""

    loader: "FileLoader"
    max_bytes: int
    known: dict[str, tuple[tuple[int, ...], str | Refused]] = field(default_factory=dict)

    async def digest(self, file: FoundFile) -> str | Refused:
        """Equal for equal texts, as documents' `content_hash`; or why the file cannot be used."""
        try:
            status = await asyncio.to_thread(file.path.stat)
        except OSError as error:
            return Refused(file.name, f"cannot be read: {error.strerror}", source=file.source)
        stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        before = self.known.get(file.source)
        if before is None or before[0] != stamp:
            before = self.known[file.source] = stamp, await self._read(file)
        return before[1]

    async def _read(self, file: FoundFile) -> str | Refused:
        from cragside.adapters.lightrag.chunking import storable
        from cragside.adapters.lightrag.versions import digest_of

        content = await asyncio.to_thread(read_file, file, self.max_bytes)
        if isinstance(content, Refused):
            return content
        try:
            text = await self.loader.load(content, name=file.name)
        except (ValidationError, ProcessingError) as error:
            return Refused(file.name, str(error.details.get("reason", error.message)), source=file.source)
        return await asyncio.to_thread(lambda: digest_of(replace(text, text=storable(text.text))))


@dataclass(frozen=True)
class Loss:
    """How many of a folder's documents would be removed."""

    folder: str
    removed: int
    known: int

    def __str__(self) -> str:
        return f"{self.removed} of {self.known} documents below {self.folder} would be removed, as their files are gone"


@dataclass
class Comparison:
    """The plan, the files behind it, what cannot be read, and the removals that need consent.

    `unfinished` are sources of documents that are as they should be, and whose indexing is still to be done.
    """

    plan: Plan
    files: Mapping[str, FoundFile]
    refused: Sequence[Refused]
    losses: Sequence[Loss]
    unfinished: frozenset[str] = frozenset()
    taken_over: Sequence[FileState] = ()
    perhaps: Mapping[str, str] = field(default_factory=dict)

    @property
    def failing(self) -> list[Refused]:
        """What cannot be read, though it should be."""
        return [each for each in self.refused if not each.skipped]

    def foresee(self, earlier: Sequence[Progress]) -> list[Progress]:
        """Take from what is added the files that take a document of an earlier version over. Returns those that stay.

        `perhaps` names, by the sources of added files, the documents that they may take over.
        """
        left, over, added, perhaps = list(earlier), list[FileState](), list[FileState](), dict[str, str]()
        for file in self.plan.added:
            document, sure = would_take_over(file, left)
            if document is not None and sure:
                left.remove(document)
                over.append(file)
                continue
            added.append(file)
            if document is not None:
                perhaps[file.source] = document.name
        self.plan, self.taken_over, self.perhaps = replace(self.plan, added=tuple(added)), over, perhaps
        return left


async def compare(place: Place, folders: Sequence[Path], contents: Contents) -> Comparison:
    """The folders as they are now beside the documents that came from below them."""
    found = await asyncio.to_thread(lambda: list(find_files(folders)))
    states, refused = list[FileState](), list[Refused]()
    for item in found:
        digest = await contents.digest(item) if isinstance(item, FoundFile) else item
        if isinstance(digest, Refused):
            refused.append(digest)
        elif isinstance(item, FoundFile):
            states.append(FileState(item.source, item.name, digest))
    return await _compared(place, folders, states, found, refused)


async def lost(place: Place, folders: Sequence[Path], found: Iterable[object]) -> Comparison:
    """The same without reading files: its plan tells removals alone."""
    items = [item for item in found if isinstance(item, FoundFile | Refused)]
    states = [FileState(item.source, item.name, "") for item in items if isinstance(item, FoundFile)]
    return await _compared(place, folders, states, items, [item for item in items if isinstance(item, Refused)])


async def _compared(
    place: Place,
    folders: Sequence[Path],
    states: Sequence[FileState],
    found: Sequence[FoundFile | Refused],
    refused: Sequence[Refused],
) -> Comparison:
    below = {root: await place.below(root) for root in dict.fromkeys(map(root_of, folders))}
    known = {each.id: each for documents in below.values() for each in documents}
    files = {item.source: item for item in found if isinstance(item, FoundFile)}
    documents = [KnownDocument(each.id, each.source, each.name, each.content_hash) for each in known.values()]
    kept = await asyncio.to_thread(_kept, [each.source for each in documents], files, refused)
    made = plan(states, documents, kept=kept)
    unfinished = frozenset(each.source for each in known.values() if not each.settled or each.status == "failed")
    return Comparison(made, files, refused, _losses(made.removed, below), unfinished)


def pruning(folders: Sequence[Path], *, yes: bool) -> Prune:
    """Removes the documents of files that are gone from the folders; many only with consent."""

    async def prune(place: Place, found: Sequence[Found]) -> Callable[[Report], Awaitable[None]]:
        gone = await lost(place, folders, found)
        removed = gone.plan.removed if agreed(gone.losses, yes=yes) else ()
        return lambda report: remove(place, removed, report)

    return prune


def _kept(sources: Sequence[str], files: Mapping[str, FoundFile], refused: Sequence[Refused]) -> set[str]:
    """The sources that cannot be read at the moment, or whose file is there and was passed over."""
    unread = {item.source for item in refused if item.source and not item.skipped}
    spelt_alike = {source.casefold() for source in files}

    def stays(source: str) -> bool:
        if source in unread or any(parent.as_posix() in unread for parent in Path(source).parents):
            return True
        # A file system that takes A.md and a.md for one says that the old name of a renamed file is still there.
        return source.casefold() not in spelt_alike and os.path.lexists(path_of(source))

    return {source for source in sources if stays(source)}


def _losses(removed: Sequence[KnownDocument], below: Mapping[str, Sequence[Progress]]) -> list[Loss]:
    ids = {document.id for document in removed}
    counted = ((root, sum(each.id in ids for each in documents), len(documents)) for root, documents in below.items())
    return [Loss(root or "/", gone, known) for root, gone, known in counted if removes_much(gone, known)]


def agreed(losses: Sequence[Loss], *, yes: bool) -> bool:
    """Whether much may be removed: as asked at the terminal. Raises `ValidationError` where nobody can be asked."""
    if yes or not losses:
        return True
    told = printable("; ".join(map(str, losses)))
    if not on_terminal():
        raise ValidationError(
            f"{told}. Nothing was done. If that is right, say --yes; else look what became of the files."
        )
    return typer.confirm(f"{told}. Remove them?", err=True)


def show_plan(found: Comparison) -> None:
    """A line for each difference, and how many of each kind there are."""
    console, made = output(), found.plan
    lines = [("add", f"{file.name}{_perhaps(found, file)}") for file in made.added]
    lines += [("take over", file.name) for file in found.taken_over] + [("change", file.name) for file in made.changed]
    lines += [("move", f"{move.document.source} -> {move.to.source}") for move in made.moved]
    lines += [("remove", document.name) for document in made.removed]
    lines += [("skip" if each.skipped else "fail", f"{each.name}  ({each.reason})") for each in found.refused]
    for what, name in lines:
        console.print(f"{what:<10}{printable(name)}", soft_wrap=True)
    counts = (made.added, found.taken_over, made.changed, made.moved, made.removed)
    told = ", ".join(f"{verb} {len(some)}" for verb, some in zip(_VERBS, counts, strict=True) if some)
    failing = f" {len(found.failing)} would fail;" if found.failing else ""
    summary = f"Would {told or 'do nothing'};{failing} {len(made.unchanged)} unchanged. Nothing was done."
    console.print(summary, soft_wrap=True)


def _perhaps(found: Comparison, file: FileState) -> str:
    name = found.perhaps.get(file.source)
    return f"  (or takes {name} over, if most of its lines are kept)" if name else ""


def plan_body(found: Comparison) -> dict[str, Any]:
    """The same for programs."""
    made = found.plan
    return {
        "added": [file.source for file in made.added],
        "taken_over": [file.source for file in found.taken_over],
        "changed": [file.source for file in made.changed],
        "moved": [{"from": move.document.source, "to": move.to.source} for move in made.moved],
        "removed": [document.source for document in made.removed],
        "unchanged": [file.source for file in made.unchanged],
        "refused": [{"name": each.name, "reason": each.reason} for each in found.refused],
        "needs_consent": bool(found.losses),
    }


def on_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty()


async def carry_out(
    place: Place, found: Comparison, options: Options, report: Report, *, max_bytes: int, wait: bool = True
) -> None:
    """Do what the plan says. What is new comes in before anything goes, so that a crash loses nothing."""
    made = found.plan
    for move in made.moved:
        try:
            await place.move(move.document.id, source=move.to.source, name=move.to.name)
        except (NotFound, ValidationError) as error:
            report.add(Line(move.to.name, "failed", error.message, move.document.id, source=move.to.source))
        else:
            renamed = move.document.name != move.to.name
            told = f"was {move.document.name if renamed else move.document.source}"
            report.add(Line(move.to.name, "moved", told, move.document.id, source=move.to.source))
    again = [state for state in made.unchanged if state.source in found.unfinished]
    wanted = [found.files[state.source] for state in (*made.added, *made.changed, *again)]
    for refused in found.refused:
        report.refuse(refused)
    await index(place, offers_of(wanted, max_bytes), options, report, wait=wait)
    for state in made.unchanged:
        if state.source not in found.unfinished:
            report.add(Line(state.name, "unchanged", source=state.source))
    await remove(place, made.removed, report)


async def remove(place: Place, documents: Sequence[KnownDocument], report: Report) -> None:
    """Forget documents whose files are gone."""
    for document in documents:
        try:
            await place.delete(document.id)
        except NotFound:  # somebody else was faster
            continue
        report.add(Line(document.name, "removed", "its file is gone", document.id, source=document.source))
