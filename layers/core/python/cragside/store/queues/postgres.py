"""The queue of indexing tasks in PostgreSQL."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from typing_extensions import override

from cragside.databases.lease_holders import is_gone
from cragside.databases.postgres.connections import FAILURES, meaning_of
from cragside.databases.postgres.database import PostgresDatabase
from cragside.domain.errors import ServiceUnavailable
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.task_messages import TaskMessages
from cragside.store.queues.driver import QueueDriver, Result, Statements
from cragside.store.queues.sql import TaskQueue

# `lease` is the end of the lease, NULL for a waiting task. `deaths` counts the workers that died with the task.
# `queue_turn` has the order of the workspaces' last turns.
TABLES = """
CREATE TABLE crag.task (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text COLLATE "C" NOT NULL, grp text COLLATE "C" NOT NULL,
    workspace text COLLATE "C" NOT NULL, document_id text NOT NULL, content_hash text NOT NULL, part integer NOT NULL,
    stage text NOT NULL, attempts integer NOT NULL DEFAULT 0, deaths integer NOT NULL DEFAULT 0,
    due timestamptz NOT NULL DEFAULT clock_timestamp(), lease timestamptz, token uuid, holder text);
CREATE INDEX task_by_key ON crag.task (key);
CREATE INDEX task_by_document ON crag.task (workspace, document_id, stage);
CREATE INDEX task_by_turn ON crag.task (workspace, stage, id) WHERE lease IS NULL;
CREATE INDEX task_in_hand ON crag.task (lease) WHERE lease IS NOT NULL;
CREATE INDEX task_suspect ON crag.task (due) WHERE deaths > 0;
CREATE TABLE crag.dead_task (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text COLLATE "C" NOT NULL UNIQUE,
    workspace text COLLATE "C" NOT NULL, document_id text NOT NULL, content_hash text NOT NULL, part integer NOT NULL,
    stage text NOT NULL, reason text NOT NULL, attempts integer NOT NULL, at text NOT NULL);
CREATE INDEX dead_task_by_document ON crag.dead_task (workspace, document_id);
CREATE TABLE crag.queue_turn (workspace text COLLATE "C" PRIMARY KEY, number bigint NOT NULL);
"""
# What PostgreSQL's advisory locks are known by: any number that no other program is likely to take.
_CHOOSING = 0x6372_6168
# A worker that is stopped while it chooses keeps others waiting for so long. Then the server ends its transaction.
STOPPED_SECONDS = 5.0
_CHOOSE = f"""SELECT pg_try_advisory_xact_lock({_CHOOSING}),
    set_config('idle_in_transaction_session_timeout', $1, true)"""


class PostgresDriver(QueueDriver):
    """Runs the queue's statements in PostgreSQL, where any number of processes receive.

    The lease of a worker that is killed ends at once for others on its machine, else by time.
    """

    pauses = 0.05, 0.5

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    @override
    async def rows(self, sql: str, *values: Any) -> list[Any]:
        async with _translating():
            return await self._database.all(sql, *values)

    @override
    async def write(self, work: Callable[[Statements], Awaitable[Result]], **default: Result) -> Result:
        async with _translating(), self._database.transaction():
            return await work(self._database)

    @override
    async def chooses_alone(self, statements: Statements) -> bool:
        [[alone, _]] = await statements.all(_CHOOSE, f"{STOPPED_SECONDS * 1000:.0f}")
        return bool(alone)

    @override
    async def may_receive(self) -> bool:
        return True

    @override
    def leads(self) -> bool:
        return True

    @override
    def is_gone(self, holder: str) -> bool:
        return is_gone(holder)

    @override
    async def close(self) -> None:
        """The database stays open."""


def postgres_queue(
    database: PostgresDatabase,
    *,
    messages: TaskMessages | None = None,
    lease_seconds: float = 60.0,
    clock: Clock = SYSTEM_CLOCK,
) -> TaskQueue:
    """Open the queue in a database, for any number of workers."""
    return TaskQueue(PostgresDriver(database), messages=messages, lease_seconds=lease_seconds, clock=clock)


@asynccontextmanager
async def _translating() -> AsyncIterator[None]:
    """Raise failures of PostgreSQL as errors of the queue."""
    try:
        yield
    except FAILURES as error:
        raise ServiceUnavailable("queue", f"The queue {meaning_of(error)[1]}.") from error
