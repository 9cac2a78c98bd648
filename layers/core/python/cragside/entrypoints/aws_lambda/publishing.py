"""The Lambda function that writes workspaces of RAG_GENERATIONS: it makes the changes of an inbox, and publishes."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from typing_extensions import override

from cragside.application.attempts import LONGEST_PAUSE_SECONDS
from cragside.application.inbox import Change, Inbox
from cragside.bootstrap import Container
from cragside.composition.generations import Draft, drafted
from cragside.domain.errors import CragsideError, Forbidden, NotFound, ServiceUnavailable, ValidationError
from cragside.domain.names import memory_of, store_name
from cragside.entrypoints.aws_lambda.indexing import (
    RECEIVES,
    IndexFunction,
    Shift,
    messages_of,
    put_off,
    received,
    started,
)
from cragside.entrypoints.aws_lambda.indexing import start as indexing
from cragside.entrypoints.aws_lambda.runtime import Handler, logger, observe_given_up
from cragside.ports.files import ObjectChanged, VersionedStore
from cragside.settings import load_settings

# Of the time that is left, for packing and sending the file. A large one needs more than a small one.
_PUBLISHING_SHARE, _LEAST_PUBLISHING_SECONDS = 0.25, 5.0
# A message that comes so often may be about a change that ends the function. From then on each is made alone.
_TOLERATED = 3
# Work that is left for so long, such as while a model is down, waits for the next change or for `reprocess`.
_PATIENCE = timedelta(days=1)
# No function runs longer.
_LONGEST_RUN = timedelta(minutes=15)


class Publisher:
    """Makes the changes of a store and publishes them as one generation. Several at once lose nothing.

    The store is fetched before its changes are listed, and a change is removed after it is published, in order. So a
    change that is listed is not in the fetched store, or all that came after it are listed too.
    """

    def __init__(self, container: Container, objects: VersionedStore, inbox: Inbox) -> None:
        self.given_up = 0
        self._settings = container.settings
        self._clock = container.clock
        self._objects = objects
        self._inbox = inbox

    async def work(self, store: str, seconds: float, *, alone: bool) -> bool:
        """Make all changes of a store, or with `alone` one after the other. Return False if work is left."""
        ends = self._clock.monotonic() + seconds
        while await self._inbox.waiting(store):
            left = ends - self._clock.monotonic()
            if left <= _LEAST_PUBLISHING_SECONDS:
                return False
            try:
                async with drafted(self._objects, store) as draft:
                    if not await self._published(draft, store, left, alone=alone):
                        return False
            except ObjectChanged:
                logger.info("another writer was faster", extra={"store": store})
        return True

    async def _published(self, draft: Draft, store: str, seconds: float, *, alone: bool) -> bool:
        names = await self._inbox.waiting(store)
        if alone and names:
            return await self._alone(draft, store, names[0], seconds)
        return await self._made_known(draft, store, names, seconds)

    async def _alone(self, draft: Draft, store: str, name: str, seconds: float) -> bool:
        """Make one change. It is given up if an earlier function began to make it alone, and ended."""
        now = self._clock.now()
        if (since := await self._inbox.suspect(name, store, now.isoformat())) is not None:
            if now - datetime.fromisoformat(since) < _LONGEST_RUN:
                return False  # the other one may still be at work
            change: Change | None = None
            with suppress(ValidationError):
                change = await self._inbox.change(name)
            reason = "Its writer ended each time it made this change."
            await self._refuse(name, change or Change("resume", store, since), reason)
            return True
        try:
            finished = await self._made_known(draft, store, [name], seconds)
        except Exception:  # the function goes on, so that the change is not to blame
            await self._inbox.clear(name)
            raise
        await self._inbox.clear(name)
        return finished

    async def _made_known(self, draft: Draft, store: str, names: Sequence[str], seconds: float) -> bool:
        """Make changes, publish them, and then remove them. Return False if work is left."""
        time = seconds - max(_LEAST_PUBLISHING_SECONDS, seconds * _PUBLISHING_SHARE)
        made = await self._made(draft, store, names, time)
        if made.differs:
            logger.info("published", extra={"store": store, "generation": await draft.publish()})
        if made.unfinished:
            await self._leave(store, list(made.changes.values()))
        for name, change in made.changes.items():
            if name in made.refused:
                await self._refuse(name, change, made.refused[name])
            else:
                await self._inbox.remove(name)
        return not made.unfinished and len(made.changes) == len(names)

    async def _made(self, draft: Draft, store: str, names: Sequence[str], seconds: float) -> "_Made":
        made, half = _Made(), self._clock.monotonic() + seconds / 2
        async with self._opened(draft) as container:
            library = (await container.workspaces.open(store)).documents
            before = await library.progress()
            for name in names:
                if self._clock.monotonic() >= half:
                    break
                await self._make(container, store, name, made)
            await container.sweeper.sweep()
            shift = Shift(container)
            await shift.work(seconds / 2)
            self.given_up += shift.given_up
            stats = await container.queue.stats()
            made.unfinished = bool(stats.pending or stats.processing)
            made.differs |= before != await library.progress()
        return made

    async def _make(self, container: Container, store: str, name: str, made: "_Made") -> None:
        made.changes[name] = Change("resume", store, self._clock.now().isoformat())
        try:
            if (change := await self._inbox.change(name)) is not None:
                made.changes[name] = replace(change, source=None)
                made.differs |= await make(container, store, change)
        except (ValidationError, NotFound, Forbidden) as error:
            made.refused[name] = error.message

    @asynccontextmanager
    async def _opened(self, draft: Draft) -> AsyncIterator[Container]:
        container = Container(self._settings.in_files(draft.home).model_copy(update={"traces": False}))
        try:
            yield container
        finally:
            await container.close()

    async def _refuse(self, name: str, change: Change, reason: str) -> None:
        self.given_up += 1
        logger.warning("a change was given up", extra={"document": change.document_id, "reason": reason})
        await self._inbox.refuse(name, change, reason)

    async def _leave(self, store: str, changes: Sequence[Change]) -> None:
        """Have work that is left gone on with, until it is too old."""
        since = min((change.at for change in changes if change.kind == "resume"), default="")
        now = self._clock.now()
        if since and now - datetime.fromisoformat(since) > _PATIENCE:
            logger.warning("work is left", extra={"store": store})
            return
        await self._inbox.put(Change("resume", store, since or now.isoformat()))


@dataclass
class _Made:
    """The changes that were made, without their texts, and the reasons of those that never can be."""

    changes: dict[str, Change] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    differs: bool = False
    unfinished: bool = False


async def make(container: Container, store: str, change: Change) -> bool:
    """Make a change in a store that can be written. Return False if it has been made already.

    Raises `ValidationError`, `NotFound` and `Forbidden` for one that can never be made, and `ServiceUnavailable`.
    """
    library = (await container.workspaces.open(store)).documents
    if change.kind == "text" and change.source is not None:
        before = await library.sourced(change.source.source)
        accepted = await container.intake.text(
            change.source, workspace=store, enrich=change.enrich, track=change.track, rename=change.rename
        )
        return accepted.outcome != "unchanged" or before != accepted.record
    if change.kind == "move" and change.record is not None:
        known = await library.document(change.document_id)
        moved = await library.move(change.document_id, source=change.record.source, name=change.record.name)
        return moved != known
    if change.kind == "delete":
        return await container.intake.delete(change.document_id, workspace=store)
    if change.kind == "restart":
        tasks = await library.restart(change.document_id or None, force=change.force)
        await container.queue.send(tasks)
        return bool(tasks)
    return False


class PublishFunction(IndexFunction):
    """Publishes the workspaces that messages name as their groups. Other messages have no effect.

    If work is left, the last message of its workspace is reported as failed, so that it comes again.
    """

    @override
    async def _looked(self, records: list[dict[str, Any]], seconds: float) -> list[dict[str, Any]]:
        groups: dict[str, list[dict[str, Any]]] = {}
        for record in records:
            groups.setdefault(_group_of(record), []).append(record)
        clock = self._container.clock
        ends, again = clock.monotonic() + seconds, []
        for workspace, called in groups.items():
            last = max(called, key=received)
            if not await self._worked(workspace, ends - clock.monotonic(), received(last)):
                again += await self._later(workspace, last)
        return again

    async def _worked(self, workspace: str, seconds: float, times: int) -> bool:
        container = self._container
        if container.versioned_store is None or container.inbox is None:
            return True
        publisher = Publisher(container, container.versioned_store, container.inbox)
        ends = container.clock.monotonic() + seconds
        try:
            finished = True
            for store in (store_name(workspace), memory_of(store_name(workspace))):
                left = ends - container.clock.monotonic()
                finished &= await publisher.work(store, left, alone=times > _TOLERATED)
            return finished
        except ValidationError:
            logger.error("a message names no workspace")
            return True
        except CragsideError as error:
            logger.error("a workspace was not published", extra={"workspace": workspace, "reason": error.message})
        except Exception:
            logger.exception("a workspace was not published")
        finally:
            observe_given_up(publisher.given_up)
        return False

    async def _later(self, workspace: str, record: dict[str, Any]) -> list[dict[str, Any]]:
        """Have a message come again, or put another one in its place before SQS gives it up."""
        messages, times = messages_of(self._container), received(record)
        if times >= RECEIVES:
            try:
                await messages.send([workspace])
            except ServiceUnavailable as error:
                logger.error("the queue failed", extra={"reason": error.message})
            else:
                return []
        await put_off(messages, record, min(2.0 ** min(times, 10), LONGEST_PAUSE_SECONDS))
        return [record]


def start() -> Handler:
    """Return the function that the settings ask for. Raises `ConfigurationError`, which ends INIT."""
    settings = load_settings()
    return indexing() if settings.generations is None else started(PublishFunction(Container(settings)))


def _group_of(record: Mapping[str, Any]) -> str:
    attributes = record.get("attributes")
    return str(attributes.get("MessageGroupId", "")) if isinstance(attributes, Mapping) else ""
