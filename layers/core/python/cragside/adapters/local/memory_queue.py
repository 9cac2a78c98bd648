"""The queue of indexing tasks in memory. It lasts as long as its tasks are kept."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from typing_extensions import override

from cragside.domain.indexing import Task
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.index_queue import DeadLetter, Delivery, IndexQueue, QueueStats

_LEASE_SECONDS = 300.0
_LOOK_SECONDS = 0.02


@dataclass(eq=False)
class _Entry:
    """A task. `attempt` counts its deliveries; while `holder` has it in hand, the lease ends at `due`."""

    task: Task
    attempt: int = 0
    due: float = 0.0
    holder: "MemoryQueue | None" = None


@dataclass
class MemoryTasks:
    """What the queues of several workers share."""

    entries: list[_Entry] = field(default_factory=list)
    letters: list[DeadLetter] = field(default_factory=list)
    numbers: "count[int]" = field(default_factory=lambda: count(1))


class MemoryQueue(IndexQueue):
    """Hands tasks out in the order in which they came. Queues with the same `tasks` are one queue."""

    def __init__(
        self, tasks: MemoryTasks | None = None, *, lease_seconds: float = _LEASE_SECONDS, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._tasks = tasks or MemoryTasks()
        self._lease_seconds = lease_seconds
        self._clock = clock

    @override
    async def send(self, tasks: Sequence[Task]) -> None:
        kept = self._tasks
        for task in tasks:
            if not any(entry.task == task and entry.holder is None for entry in self._current()):
                kept.entries.append(_Entry(task))
            kept.letters = [letter for letter in kept.letters if letter.task != task]

    @override
    async def receive(self, *, limit: int, wait: float) -> list[Delivery]:
        ends = self._clock.monotonic() + wait
        # Delays and leases end by themselves, so there is no event to wait for.
        while not (found := self._free(limit)) and self._clock.monotonic() < ends:
            await self._clock.sleep(_LOOK_SECONDS)
        for entry in found:
            entry.attempt += 1
            entry.holder, entry.due = self, self._clock.monotonic() + self._lease_seconds
        return [Delivery(entry.task, entry.attempt, entry) for entry in found]

    @override
    async def extend(self, delivery: Delivery) -> None:
        if entry := self._held(delivery):
            entry.due = self._clock.monotonic() + self._lease_seconds

    @override
    async def finish(self, delivery: Delivery) -> None:
        if entry := self._held(delivery):
            self._tasks.entries.remove(entry)

    @override
    async def retry(self, delivery: Delivery, *, delay: float) -> None:
        if entry := self._held(delivery):
            entry.holder, entry.due = None, self._clock.monotonic() + delay

    @override
    async def put_off(self, delivery: Delivery, *, delay: float) -> None:
        if entry := self._held(delivery):
            entry.attempt -= 1
            entry.holder, entry.due = None, self._clock.monotonic() + delay

    @override
    async def bury(self, delivery: Delivery, reason: str) -> None:
        if entry := self._held(delivery):
            self._tasks.entries.remove(entry)
            number, now = str(next(self._tasks.numbers)), self._clock.now().isoformat()
            self._tasks.letters.insert(0, DeadLetter(number, entry.task, reason, entry.attempt, now))

    @override
    async def dead(self, *, workspace: str | None = None, limit: int = 100) -> list[DeadLetter]:
        return [each for each in self._tasks.letters if workspace in (None, each.task.workspace)][:limit]

    @override
    async def revive(self, *, workspace: str | None = None, document_id: str | None = None) -> int:
        letters = await self.dead(workspace=workspace, limit=len(self._tasks.letters))
        wanted = [each.task for each in reversed(letters) if document_id in (None, each.task.document_id)]
        await self.send(wanted)
        return len(wanted)

    @override
    async def discard(self, *, workspace: str, document_id: str | None = None) -> None:
        def stays(task: Task) -> bool:
            return task.workspace != workspace or document_id not in (None, task.document_id)

        kept = self._tasks
        kept.entries = [entry for entry in kept.entries if entry.holder or stays(entry.task)]
        kept.letters = [letter for letter in kept.letters if stays(letter.task)]

    @override
    def leads(self) -> bool:
        return True

    @override
    async def stats(self) -> QueueStats:
        return self._counted(None)

    @override
    async def stats_of(self, workspace: str) -> QueueStats | None:
        return self._counted(workspace)

    @override
    async def close(self) -> None:
        """Hand back what this queue has in hand."""
        for entry in self._tasks.entries:
            if entry.holder is self:
                entry.holder, entry.due = None, 0.0

    def _current(self) -> list[_Entry]:
        """All tasks, after those whose lease has ended are free again."""
        for entry in self._tasks.entries:
            if entry.holder and entry.due <= self._clock.monotonic():
                entry.holder = None
        return self._tasks.entries

    def _free(self, limit: int) -> list[_Entry]:
        """The first tasks that may be handed out. A task that is open or delayed keeps those of its group back."""
        entries, now = self._current(), self._clock.monotonic()
        closed = {entry.task.group for entry in entries if entry.holder}
        found: list[_Entry] = []
        for entry in entries:
            if entry.due > now:
                closed.add(entry.task.group)
            elif entry.task.group not in closed:
                found.append(entry)
        return found[:limit]

    def _held(self, delivery: Delivery) -> _Entry | None:
        """The entry of a delivery, None when somebody else has it by now."""
        entry: _Entry = delivery.receipt
        current = entry.holder is self and entry.attempt == delivery.attempt
        return entry if current and entry in self._tasks.entries else None

    def _counted(self, workspace: str | None) -> QueueStats:
        entries = [entry for entry in self._current() if workspace in (None, entry.task.workspace)]
        held = sum(entry.holder is not None for entry in entries)
        letters = sum(workspace in (None, letter.task.workspace) for letter in self._tasks.letters)
        return QueueStats(len(entries) - held, held, letters)
