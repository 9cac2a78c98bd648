"""Takes changes of workspaces in for a writer that makes them later, where no database can be written at once."""

import hashlib
import io
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

from pydantic import TypeAdapter
from typing_extensions import override

from cragside.application.allowance import weight
from cragside.application.intake import Intake
from cragside.domain.document import SourceText
from cragside.domain.errors import NotFound, ServiceUnavailable, ValidationError
from cragside.domain.indexing import Acceptance, DeadLetter, DocumentKey, DocumentRecord, Part, QueueStats, Task
from cragside.domain.names import memory_of, owner_of, store_name
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.files import ObjectChanged, VersionedStore
from cragside.ports.task_messages import TaskMessages

if TYPE_CHECKING:
    from cragside.store.workspaces import Workspaces

WAITING, REFUSED = "in/", "refused/"
# What is known of a text that nobody has cut into passages.
_WAITS = Part(0, 0, -1)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a store. `record` is what the document is foreseen to be, `at` a time in ISO 8601.

    `resume` changes nothing: work that was left is gone on with.
    """

    kind: Literal["text", "move", "delete", "restart", "resume"]
    workspace: str
    at: str
    document_id: str = ""
    source: SourceText | None = None
    record: DocumentRecord | None = None
    enrich: bool = True
    track: str = ""
    rename: bool = False
    force: bool = False
    reason: str = ""

    def content(self) -> bytes:
        """Return the change as JSON."""
        return json.dumps(asdict(self), default=str).encode()


@cache
def _changes() -> TypeAdapter[Change]:
    return TypeAdapter(Change)


class Inbox:
    """Keeps the changes that wait, and those that were refused, in a bucket. A message calls the writer.

    A change is applied in the order of its name, which begins with its time, and is removed only once it is published.
    Raises as `VersionedStore` and `TaskMessages` do, and `ValidationError` for what is no name of a workspace.
    """

    def __init__(self, objects: VersionedStore, messages: TaskMessages, clock: Clock = SYSTEM_CLOCK) -> None:
        self._objects = objects
        self._messages = messages
        self._clock = clock
        self._count = count()

    async def put(self, change: Change) -> None:
        """Store a change durably, and call the writer. If that fails, `ServiceUnavailable` says that it is stored."""
        moment, number = int(self._clock.time() * 1e6), next(self._count) % 10**6
        name = f"{moment:017d}-{number:06d}-{os.urandom(4).hex()}-{_digest(change.document_id)}.json"
        await self._write(f"{_folder(WAITING, change.workspace)}{name}", change)
        try:
            await self.call([change.workspace])
        except ServiceUnavailable as error:
            kept = f"{error.message} The change itself is stored, and made when the writer is called again."
            raise ServiceUnavailable(error.component, kept).at(error.place) from error

    async def call(self, workspaces: Sequence[str]) -> None:
        """Call the writers of workspaces."""
        await self._messages.send({owner_of(name) for name in workspaces})

    async def waiting(self, workspace: str) -> Sequence[str]:
        """Return the names of a store's changes, in the order in which they have to be made."""
        return await self._objects.names(_folder(WAITING, workspace))

    async def workspaces(self) -> list[str]:
        """Return the workspaces with changes that wait."""
        names = await self._objects.names(WAITING)
        return sorted({owner_of(name.split("/")[1]) for name in names})

    async def change(self, name: str) -> Change | None:
        """Return a change. None if it is gone. Raises `ValidationError` for what is no change."""
        pieces: list[bytes] = []
        try:
            await self._objects.read(name, lambda _: pieces.append)
        except NotFound:
            return None
        try:
            return _changes().validate_python(json.loads(b"".join(pieces)))
        except (ValueError, RecursionError) as error:
            raise ValidationError(f"{name} is no change that this version of cragside can read.") from error

    async def remove(self, name: str) -> None:
        """Remove a change that is published."""
        await self._objects.remove(name)

    async def suspect(self, name: str, workspace: str, at: str) -> str | None:
        """Note that this change alone is tried. Return since when, if it was noted before and not cleared."""
        noted = _beside(name)
        if (earlier := await self.change(noted)) is not None:
            return earlier.at
        await self._write(noted, Change("resume", workspace, at, reason="Its writer makes this change alone."))
        return None

    async def clear(self, name: str) -> None:
        """Take a suspicion back."""
        await self._objects.remove(_beside(name))

    async def refuse(self, name: str, change: Change, reason: str) -> None:
        """Give a change up. Its reason is kept without its text, until the bucket's lifecycle ends it."""
        await self._objects.remove(_beside(name))
        record = change.record and replace(change.record, title="", parts=(_WAITS,), tier1={}, metadata={})
        await self._write(_beside(name), replace(change, reason=reason, source=None, record=record))
        await self._objects.remove(name)

    async def latest(self, workspace: str, document_id: str) -> Change | None:
        """Return the latest change of a document that waits, or else that was refused."""
        for kind in (WAITING, REFUSED):
            ending = f"-{_digest(document_id)}.json"
            found = [name for name in await self._objects.names(_folder(kind, workspace)) if name.endswith(ending)]
            if found and (change := await self.change(found[-1])) is not None:
                return change
        return None

    async def refused(self, workspace: str, *, limit: int) -> list[DeadLetter]:
        """Return the changes that were given up, latest first."""
        names = await self._objects.names(_folder(REFUSED, workspace))
        letters = []
        for name in reversed(names[-limit:]):
            if (change := await self.change(name)) is not None:
                digest = change.record.content_hash if change.record else ""
                task = Task(workspace, change.document_id, digest, 0, "embed")
                letters.append(DeadLetter(name, task, change.reason, 1, change.at))
        return letters

    async def stats(self, workspace: str) -> QueueStats:
        """Count a store's changes that wait and that were given up."""
        waiting = await self.waiting(workspace)
        return QueueStats(len(waiting), 0, len(await self._objects.names(_folder(REFUSED, workspace))))

    async def _write(self, name: str, change: Change) -> None:
        try:
            await self._objects.replace(name, io.BytesIO(change.content()), expected=None, facts={})
        except ObjectChanged:
            return  # the request was sent twice on the way, and arrived the first time


def _folder(kind: str, workspace: str) -> str:
    return f"{kind}{store_name(workspace)}/"


def _digest(document_id: str) -> str:
    return hashlib.sha256(document_id.encode(errors="replace")).hexdigest()[:16]


def _beside(name: str) -> str:
    return f"{REFUSED}{name.removeprefix(WAITING)}"


class DeferredIntake(Intake):
    """Accepts documents into an inbox. They can be found once a writer has published them."""

    def __init__(self, workspaces: "Workspaces", *others: Any, inbox: Inbox, clock: Clock = SYSTEM_CLOCK, **named: Any):
        super().__init__(workspaces, *others, **named)
        self._inbox = inbox
        self._clock = clock

    @override
    async def text(
        self, source: SourceText, *, workspace: str, enrich: bool = True, track: str = "", rename: bool = False
    ) -> Acceptance:
        library, at = (await self._workspaces.open(workspace)).documents, self._now()
        key = None if rename else DocumentKey(source.source, track)
        async with self._limits.room(workspace, weight(source), key):
            foreseen = await library.foreseen(source, enrich=enrich, track=track, rename=rename, at=at)
            change = Change(
                "text", workspace, at, foreseen.record.id, source, foreseen.record, enrich, track, rename=rename
            )
            await self._inbox.put(change)
        return replace(foreseen, unread=source.unread)

    @override
    async def document(self, document_id: str, *, workspace: str) -> DocumentRecord | None:
        change = await self._inbox.latest(workspace, document_id)
        if change is not None and change.kind == "delete" and not change.reason:
            return None
        self._workspaces.look_again(workspace)
        known = await super().document(document_id, workspace=workspace)
        if change is None or change.record is None or (change.reason and known is not None):
            return known
        parts = tuple(replace(part, error=change.reason) for part in change.record.parts)
        return replace(change.record, parts=parts, created_at=known.created_at if known else change.at)

    @override
    async def delete(self, document_id: str, *, workspace: str, content_hash: str | None = None) -> bool:
        if await self.document(document_id, workspace=workspace) is None:
            return False
        return await super().delete(document_id, workspace=workspace, content_hash=content_hash)

    @override
    async def move(self, document_id: str, *, source: str, name: str, workspace: str) -> DocumentRecord:
        known = await self.document(document_id, workspace=workspace)
        if known is None:
            raise NotFound(f"There is no document {document_id} in this workspace.")
        other = await (await self._workspaces.open(workspace)).documents.sourced(source)
        if other is not None and other.id != document_id:
            raise ValidationError(f"The document {other.id} has this source already. Forget it first.", field="source")
        await self._limits.check_change(workspace)
        moved = replace(known, source=source, name=name, label=name)
        await self._inbox.put(Change("move", workspace, self._now(), document_id, record=moved))
        return moved

    @override
    async def backlog(self, workspace: str) -> QueueStats:
        documents, memory = [await self._inbox.stats(name) for name in (workspace, memory_of(workspace))]
        return QueueStats(documents.pending + memory.pending, 0, documents.dead + memory.dead)

    @override
    async def given_up(self, workspace: str, *, limit: int) -> list[DeadLetter]:
        stores = workspace, memory_of(workspace)
        letters = [letter for name in stores for letter in await self._inbox.refused(name, limit=limit)]
        return sorted(letters, key=lambda letter: letter.at, reverse=True)[:limit]

    @override
    async def _delete(self, document_id: str, workspace: str) -> None:
        await self._inbox.put(Change("delete", workspace, self._now(), document_id))

    @override
    async def _restarted(self, name: str, document_id: str | None, force: bool) -> int:
        await self._limits.check_change(name)
        await self._inbox.put(Change("restart", name, self._now(), document_id or "", force=force))
        return 1

    def _now(self) -> str:
        return self._clock.now().isoformat()
