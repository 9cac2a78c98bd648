"""The queue of indexing tasks in tables of SQL."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

import asyncio
import logging
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress

from cragside.databases.lease_holders import new_holder
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.indexing import DeadLetter, Delivery, QueueStats, Task
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.task_messages import TaskMessages
from cragside.store.queues.driver import QueueDriver, Statements
from cragside.store.queues.turns import DEATHS_TOLERATED, TASK, next_tasks

# How often a receiver looks for others that have died.
_LOOK_SECONDS = 2.0
_REPLACE_DEAD = "DELETE FROM crag.dead_task WHERE key = ANY($1)"
_SEND = f"""INSERT INTO crag.task (key, grp, {TASK}, due)
    SELECT $1, $2, $3, $4, $5, $6::integer, $7, clock_timestamp()
    WHERE NOT EXISTS (SELECT 1 FROM crag.task WHERE key = $1 AND lease IS NULL)"""
_PRESENT = "SELECT key FROM crag.task WHERE key = ANY($1)"
_HELD = "id = $1 AND token = $2"
_FINISH = f"DELETE FROM crag.task WHERE {_HELD}"
_EXTEND = f"UPDATE crag.task SET lease = clock_timestamp() + make_interval(secs => $3) WHERE {_HELD}"
_FREE = "lease = NULL, token = NULL, holder = NULL"
_GIVE_BACK = f"""UPDATE crag.task SET {_FREE}, attempts = attempts + $3,
    due = clock_timestamp() + make_interval(secs => $4) WHERE {_HELD}"""
_RETURN_ALL = f"UPDATE crag.task SET {_FREE} WHERE lease IS NOT NULL AND holder = $1"
_TO_DO = """SELECT EXISTS (SELECT 1 FROM crag.task WHERE lease IS NULL),
    EXISTS (SELECT 1 FROM crag.task WHERE lease <= clock_timestamp())"""
_HOLDERS = "SELECT DISTINCT coalesce(holder, '') FROM crag.task WHERE lease IS NOT NULL"
# A worker with many tasks in hand may die of any of them, or of none: none is blamed until it was alone.
_OUTLIVE = f"""UPDATE crag.task SET {_FREE}, deaths = deaths + 1,
    attempts = attempts + CASE WHEN deaths < {DEATHS_TOLERATED} THEN 0 ELSE 1 END,
    due = CASE WHEN deaths < {DEATHS_TOLERATED} THEN due
        ELSE clock_timestamp() + make_interval(secs => least(60, 1 << least(attempts, 6))) END
    WHERE lease IS NOT NULL AND coalesce(holder, '') = ANY($1)"""
_EXPIRE = f"UPDATE crag.task SET {_FREE}, attempts = attempts + 1 WHERE lease <= clock_timestamp()"
_LEASE = """UPDATE crag.task SET lease = clock_timestamp() + make_interval(secs => $1), token = $2, holder = $3
    WHERE id = ANY($4)"""
_BURY = f"""INSERT INTO crag.dead_task (key, {TASK}, reason, attempts, at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"""


logger = logging.getLogger("cragside")


class TaskQueue:
    """Hands each task to one worker at a time. Tasks are in a table, dead letters in another.

    One call may get several tasks of a group, in order. While one of them is open, no other call gets tasks of that
    group. A delivery that is not settled comes again when its lease ends, or at once if its receiver is known to have
    died. A task that waits for its retry lets later ones of its group pass. `turns` says which task is next.

    The driver says in which database, and who receives. If there are `messages`, they tell of tasks that were added.
    Receivers need none, and take away those that they find. Failures raise `ServiceUnavailable("queue", ...)`.
    """

    def __init__(
        self,
        driver: QueueDriver,
        *,
        messages: TaskMessages | None = None,
        lease_seconds: float = 60.0,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._driver = driver
        self._messages = messages
        self._lease_seconds = lease_seconds
        self._clock = clock
        self._holder = new_holder()
        self._settled = asyncio.Event()
        self._pause = driver.pauses[0]
        self._looked = -_LOOK_SECONDS
        self._took = False

    async def send(self, tasks: Sequence[Task]) -> None:
        """Add tasks durably, except those whose equals are waiting. A task replaces an equal dead letter."""
        if tasks:
            await self._driver.write(lambda statements: _sent(statements, tasks))
            await self._tell(tasks)

    async def restore(self, tasks: Sequence[Task]) -> int:
        """Add the tasks that neither wait nor are in anybody's hands. Return their number."""

        async def restore(statements: Statements) -> list[Task]:
            found = {row[0] for row in await statements.all(_PRESENT, [task.key for task in tasks])}
            missing = [task for task in tasks if task.key not in found]
            await _sent(statements, missing)
            return missing

        restored = await self._driver.write(restore) if tasks else []
        await self._tell(restored)
        return len(restored)

    async def receive(self, *, limit: int, wait: float) -> list[Delivery]:
        """At most `limit` tasks, as soon as there are any; none after `wait` seconds."""
        ends, (shortest, longest) = self._clock.monotonic() + wait, self._driver.pauses
        deliveries = await self._received(limit)
        if not deliveries and self._messages is not None:
            await self._take_messages(self._messages)
            deliveries = await self._received(limit)
        while True:
            if deliveries:
                self._pause = shortest
                return deliveries
            if (left := ends - self._clock.monotonic()) <= 0:
                return []
            # A task that this process settles may let others of its group pass. Tasks of other processes are polled.
            await self._clock.wait_for(self._settled, min(self._pause, left))
            self._settled.clear()
            self._pause = min(self._pause * 2, longest)
            deliveries = await self._received(limit)

    async def extend(self, delivery: Delivery) -> None:
        """Renew the lease of a task."""
        await self._driver.rows(_EXTEND, *delivery.receipt, self._lease_seconds)

    async def finish(self, delivery: Delivery) -> None:
        """Settle a task that is done."""
        await self._driver.rows(_FINISH, *delivery.receipt)
        self._settled.set()

    async def retry(self, delivery: Delivery, *, delay: float) -> None:
        """Settle a task that failed. It comes again after `delay` seconds and counts one attempt more."""
        await self._driver.rows(_GIVE_BACK, *delivery.receipt, 1, delay)
        self._settled.set()

    async def put_off(self, delivery: Delivery, *, delay: float) -> None:
        """Settle a task that was not tried. It comes again after `delay` seconds, uncounted."""
        await self._driver.rows(_GIVE_BACK, *delivery.receipt, 0, delay)
        self._settled.set()

    async def bury(self, delivery: Delivery, reason: str) -> None:
        """Settle a task that is given up. It becomes a dead letter."""
        task, at = delivery.task, self._clock.now().isoformat(timespec="seconds")

        async def bury(statements: Statements) -> None:
            if not await statements.all(f"{_FINISH} RETURNING 1", *delivery.receipt):
                return  # another worker has it, or has buried it
            # A new letter comes after the others.
            await statements.all(_REPLACE_DEAD, [task.key])
            await statements.all(_BURY, task.key, *_row(task), reason, delivery.attempt, at)

        await self._driver.write(bury)
        self._settled.set()

    async def dead(self, *, workspace: str | None = None, limit: int = 100) -> list[DeadLetter]:
        """Dead letters, latest first."""
        where, values = _where(workspace=workspace)
        sql = f"""SELECT id, reason, attempts, at, {TASK} FROM crag.dead_task {where}
            ORDER BY id DESC LIMIT ${len(values) + 1}"""
        rows = await self._driver.rows(sql, *values, limit)
        return [DeadLetter(str(row[0]), Task(*row[4:]), *row[1:4]) for row in map(tuple, rows)]

    async def revive(self, *, workspace: str | None = None, document_id: str | None = None) -> int:
        """Queue dead letters again as new tasks. Return their number."""
        where, values = _where(workspace=workspace, document_id=document_id)

        async def revive(statements: Statements) -> list[Task]:
            rows = await statements.all(f"DELETE FROM crag.dead_task {where} RETURNING {TASK}", *values)
            tasks = [Task(*row) for row in rows]
            await _sent(statements, tasks)
            return tasks

        revived: list[Task] = await self._driver.write(revive, default=[])
        await self._tell(revived)
        return len(revived)

    async def discard(self, *, workspace: str, document_id: str | None = None) -> None:
        """Forget the tasks and dead letters of a deleted document; without an id, of a workspace."""
        where, values = _where(workspace=workspace, document_id=document_id)

        async def discard(statements: Statements) -> None:
            await statements.all(f"DELETE FROM crag.task {where}", *values)
            await statements.all(f"DELETE FROM crag.dead_task {where}", *values)
            if document_id is None:
                await statements.all(f"DELETE FROM crag.queue_turn {where}", *values)

        await self._driver.write(discard, default=None)

    def leads(self) -> bool:
        """Return True if this process may queue missing tasks: it is the only receiver, or there is no single one."""
        return self._driver.leads()

    async def stats(self) -> QueueStats:
        """The counts of all workspaces."""
        return await self._stats(None)

    async def stats_of(self, workspace: str) -> QueueStats:
        """The counts of a workspace."""
        return await self._stats(workspace)

    async def close(self) -> None:
        """Give back the tasks in hand without counting an attempt, and let others receive."""
        if self._took:
            self._took = False
            with suppress(ServiceUnavailable):  # their leases end by themselves
                await self._driver.rows(_RETURN_ALL, self._holder)
        await self._driver.close()
        self._looked = -_LOOK_SECONDS

    async def _tell(self, tasks: Iterable[Task]) -> None:
        if self._messages is not None and (groups := {task.group for task in tasks}):
            await self._messages.send(groups)

    async def _take_messages(self, messages: TaskMessages) -> None:
        try:
            await messages.take(self.send)
        except ServiceUnavailable as error:
            logger.warning("Messages about tasks stay where they are: %s", error.message)

    async def _stats(self, workspace: str | None) -> QueueStats:
        where, values = _where(workspace=workspace)
        sql = f"""SELECT count(*) - count(lease), count(lease), (SELECT count(*) FROM crag.dead_task {where})
            FROM crag.task {where}"""
        rows = await self._driver.rows(sql, *values)
        return QueueStats(*rows[0]) if rows else QueueStats(0, 0, 0)

    async def _received(self, limit: int) -> list[Delivery]:
        if not await self._driver.may_receive():
            return []
        gone = await self._gone()
        waiting, expired = next(iter(await self._driver.rows(_TO_DO)), (False, False))
        if not (gone or waiting or expired):
            return []

        async def take(statements: Statements) -> list[Delivery]:
            if not await self._driver.chooses_alone(statements):
                return []
            if gone:
                await statements.all(_OUTLIVE, gone)
            if expired:
                await statements.all(_EXPIRE)
            turns = await next_tasks(statements, self._holder, limit)
            # A new token: an older delivery of the same task can no longer settle it.
            token = str(uuid.uuid4())
            if turns:
                self._took = True
                ids = [turn.id for turn in turns]
                await statements.all(_LEASE, self._lease_seconds, token, self._holder, ids)
            return [Delivery(turn.task, turn.attempts + 1, (turn.id, token)) for turn in turns]

        return await self._driver.write(take)

    async def _gone(self) -> list[str]:
        if self._clock.monotonic() - self._looked < _LOOK_SECONDS:
            return []
        holders = [row[0] for row in await self._driver.rows(_HOLDERS)]
        self._looked = self._clock.monotonic()
        return [holder for holder in holders if holder != self._holder and self._driver.is_gone(holder)]


async def _sent(statements: Statements, tasks: Iterable[Task]) -> None:
    rows = [(task.key, task.group, *_row(task)) for task in tasks]
    await statements.all(_REPLACE_DEAD, [row[0] for row in rows])
    await statements.many(_SEND, rows)


def _row(task: Task) -> tuple[str, str, str, int, str]:
    return task.workspace, task.document_id, task.content_hash, task.part, task.stage


def _where(**wanted: str | None) -> tuple[str, list[str]]:
    given = {name: value for name, value in wanted.items() if value is not None}
    equals = " AND ".join(f"{name} = ${number}" for number, name in enumerate(given, start=1))
    return (f"WHERE {equals}" if given else ""), list(given.values())
