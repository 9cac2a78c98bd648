"""The queue of indexing tasks in PostgreSQL: its tables, and the function that hands tasks out.

The function is in the database so that a worker that is stopped in the middle of a call keeps nobody waiting.
"""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from typing_extensions import override

from cragside.databases.lease_holders import is_gone, new_holder
from cragside.databases.postgres.connections import FAILURES, meaning_of
from cragside.databases.postgres.database import PostgresDatabase
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.indexing import Task
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.index_queue import DeadLetter, Delivery, IndexQueue, QueueStats

# What PostgreSQL's advisory locks are known by: any number that no other program is likely to take.
_CHOOSING = 0x6372_6168
# A task that this many workers died with is handed out alone. From then on, each death counts as an attempt.
DEATHS_TOLERATED = 3

TASK = "workspace, document_id, content_hash, part, stage"

# `lease` is the end of the lease, NULL for a waiting task. `deaths` counts the workers that died with the task.
# `queue_turn` has the order of the workspaces' last turns.
TABLES = f"""
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
CREATE SEQUENCE crag.queue_turn_number;

-- At most `most` waiting tasks of a stage, in turns: the workspace with the fewest tasks in hand is next, then the one
-- whose last turn was longest ago. `besides` count as in hand. `before` is how many tasks the workspace had in hand.
CREATE FUNCTION crag.tasks_in_turn(wanted text, most integer, besides bigint[])
RETURNS TABLE (task_id bigint, before bigint) LANGUAGE sql AS $$
    WITH RECURSIVE waiting AS (
        (SELECT workspace FROM crag.task WHERE lease IS NULL ORDER BY workspace LIMIT 1)
        UNION ALL
        SELECT (SELECT task.workspace FROM crag.task WHERE lease IS NULL AND task.workspace > waiting.workspace
            ORDER BY task.workspace LIMIT 1)
        FROM waiting WHERE waiting.workspace IS NOT NULL),
    in_hand AS (SELECT workspace, grp FROM crag.task WHERE lease IS NOT NULL OR id = ANY(besides)),
    turns AS (
        SELECT workspace, coalesce(number, 0) AS number,
            (SELECT count(*) FROM in_hand WHERE in_hand.workspace = waiting.workspace)
                + coalesce(number = (SELECT max(number) FROM crag.queue_turn), false)::integer AS taken
        FROM waiting LEFT JOIN crag.queue_turn USING (workspace) WHERE workspace IS NOT NULL)
    SELECT ready.id, turns.taken + ready.nth - 1 AS before
    FROM turns CROSS JOIN LATERAL (
        SELECT id, row_number() OVER (ORDER BY id) AS nth FROM crag.task
        WHERE workspace = turns.workspace AND stage = wanted AND lease IS NULL AND due <= clock_timestamp()
        AND grp NOT IN (SELECT grp FROM in_hand)
        AND (wanted = 'embed' OR NOT EXISTS (SELECT 1 FROM crag.task AS other
            WHERE other.workspace = task.workspace AND other.document_id = task.document_id AND other.stage = 'embed'))
        ORDER BY id LIMIT most) AS ready
    ORDER BY before, turns.number, turns.workspace LIMIT greatest(most, 0)
$$;

-- Hand out at most `most` tasks: text before enrichment, but no workspace waits until all text of others is embedded,
-- and half of the free places stay free for text that arrives meanwhile. `dead` are holders that no longer live.
CREATE FUNCTION crag.take_tasks(most integer, seconds float8, worker text, dead text[])
RETURNS SETOF crag.task LANGUAGE plpgsql AS $$
DECLARE
    busy boolean;
    embedding bigint[];
    later integer;
    picked bigint[];
BEGIN
    -- One worker at a time chooses. The others ask again.
    IF NOT pg_try_advisory_xact_lock({_CHOOSING}) THEN
        RETURN;
    END IF;
    UPDATE crag.task SET lease = NULL, token = NULL, holder = NULL, attempts = attempts + 1
        WHERE lease <= clock_timestamp();
    -- A worker with many tasks in hand may die of any of them, or of none: none is blamed until it was alone.
    UPDATE crag.task SET lease = NULL, token = NULL, holder = NULL, deaths = deaths + 1,
        attempts = attempts + (deaths >= {DEATHS_TOLERATED})::integer,
        due = CASE WHEN deaths < {DEATHS_TOLERATED} THEN due
            ELSE clock_timestamp() + make_interval(secs => least(60, 1 << least(attempts, 6))) END
        WHERE lease IS NOT NULL AND holder = ANY(dead);
    IF EXISTS (SELECT 1 FROM crag.task
        WHERE lease IS NOT NULL AND holder = worker AND deaths >= {DEATHS_TOLERATED}) THEN
        RETURN;
    END IF;
    busy := EXISTS (SELECT 1 FROM crag.task WHERE lease IS NOT NULL AND holder = worker);
    picked := ARRAY(SELECT id FROM crag.task
        WHERE deaths >= {DEATHS_TOLERATED} AND deaths > 0 AND lease IS NULL AND due <= clock_timestamp()
        AND grp NOT IN (SELECT grp FROM crag.task WHERE lease IS NOT NULL) ORDER BY due LIMIT 1);
    IF cardinality(picked) > 0 AND busy THEN
        RETURN;
    END IF;
    IF cardinality(picked) = 0 THEN
        SELECT coalesce(array_agg(task_id), '{{}}'), count(*) FILTER (WHERE before > 0) INTO embedding, later
            FROM crag.tasks_in_turn('embed', most, '{{}}');
        IF cardinality(embedding) < most THEN
            picked := embedding || ARRAY(SELECT task_id FROM crag.tasks_in_turn('enrich', least(
                most - cardinality(embedding),
                greatest(most / 2, CASE WHEN busy OR cardinality(embedding) > 0 THEN 0 ELSE 1 END)), embedding));
        ELSE
            -- No workspace gets a second task before another one gets its first.
            picked := ARRAY(SELECT task_id FROM crag.tasks_in_turn('enrich', later, embedding) WHERE before = 0);
            picked := embedding[1:most - cardinality(picked)] || picked;
        END IF;
    END IF;
    UPDATE crag.task SET lease = clock_timestamp() + make_interval(secs => seconds), token = gen_random_uuid(),
        holder = worker WHERE id = ANY(picked);
    INSERT INTO crag.queue_turn
        SELECT workspace, max(nth) FROM (
            SELECT task.workspace, nextval('crag.queue_turn_number') AS nth
            FROM unnest(picked) WITH ORDINALITY AS each (id, place) JOIN crag.task USING (id)
            ORDER BY place) AS given
        GROUP BY workspace
        ON CONFLICT (workspace) DO UPDATE SET number = excluded.number;
    RETURN QUERY SELECT task.* FROM unnest(picked) WITH ORDINALITY AS each (id, place)
        JOIN crag.task USING (id) ORDER BY place;
END
$$;
"""


_POLL_SECONDS, _LONGEST_POLL_SECONDS = 0.05, 0.5
# How often a worker looks whether others on its machine have died.
_LOOK_SECONDS = 2.0
_SEND = f"""WITH revived AS (DELETE FROM crag.dead_task WHERE key = ANY($1))
    INSERT INTO crag.task (key, grp, {TASK})
    SELECT key, grp, {TASK}
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::integer[], $7::text[])
        WITH ORDINALITY AS sent (key, grp, {TASK}, place)
    WHERE NOT EXISTS (SELECT 1 FROM crag.task WHERE task.key = sent.key AND lease IS NULL) ORDER BY place"""
_RECEIVE = f"SELECT id, token, attempts + 1, {TASK} FROM crag.take_tasks($1, $2, $3, $4)"
_HELD = "id = $1 AND token = $2"
_GIVE_BACK = f"""UPDATE crag.task SET lease = NULL, token = NULL, holder = NULL, attempts = attempts + $3,
    due = clock_timestamp() + make_interval(secs => $4) WHERE {_HELD}"""
_BURY = f"""INSERT INTO crag.dead_task (key, {TASK}, reason, attempts, at)
    SELECT key, {TASK}, $3, $4, $5 FROM crag.task WHERE {_HELD}"""
_CHOSEN = "($1::text IS NULL OR workspace = $1) AND ($2::text IS NULL OR document_id = $2)"
_DEAD = f"""SELECT id, reason, attempts, at, {TASK} FROM crag.dead_task
    WHERE {_CHOSEN} ORDER BY id DESC LIMIT $3"""
_RETURN_ALL = """UPDATE crag.task SET lease = NULL, token = NULL, holder = NULL
    WHERE lease IS NOT NULL AND holder = $1"""
_STATS = """SELECT count(*) FILTER (WHERE lease IS NULL), count(lease),
    (SELECT count(*) FROM crag.dead_task WHERE $1::text IS NULL OR workspace = $1)
    FROM crag.task WHERE $1::text IS NULL OR workspace = $1"""


class PostgresQueue(IndexQueue):
    """Tasks in a table. The lease of a worker that is killed ends at once for others on its machine, else by time."""

    def __init__(self, database: PostgresDatabase, *, lease_seconds: float = 60.0, clock: Clock = SYSTEM_CLOCK) -> None:
        self._database = database
        self._lease_seconds = lease_seconds
        self._clock = clock
        self._holder = new_holder()
        self._settled = asyncio.Event()
        self._pause = _POLL_SECONDS
        self._looked = -_LOOK_SECONDS

    @override
    async def send(self, tasks: Sequence[Task]) -> None:
        if not tasks:
            return
        rows = {task.key: (task.key, task.group, *_row(task)) for task in tasks}
        async with _translating():
            await self._database.value(_SEND, *map(list, zip(*rows.values(), strict=True)))

    @override
    async def receive(self, *, limit: int, wait: float) -> list[Delivery]:
        ends = self._clock.monotonic() + wait
        while True:
            if deliveries := await self._received(limit):
                self._pause = _POLL_SECONDS
                return deliveries
            if (left := ends - self._clock.monotonic()) <= 0:
                return []
            # A task that this process settles may let others of its group pass. Tasks of other processes are polled.
            await self._clock.wait_for(self._settled, min(self._pause, left))
            self._settled.clear()
            self._pause = min(self._pause * 2, _LONGEST_POLL_SECONDS)

    @override
    async def extend(self, delivery: Delivery) -> None:
        async with _translating():
            await self._database.value(
                f"UPDATE crag.task SET lease = clock_timestamp() + make_interval(secs => $3) WHERE {_HELD}",
                *delivery.receipt,
                self._lease_seconds,
            )

    @override
    async def finish(self, delivery: Delivery) -> None:
        async with self._settling():
            await self._database.value(f"DELETE FROM crag.task WHERE {_HELD}", *delivery.receipt)

    @override
    async def retry(self, delivery: Delivery, *, delay: float) -> None:
        async with self._settling():
            await self._database.value(_GIVE_BACK, *delivery.receipt, 1, delay)

    @override
    async def put_off(self, delivery: Delivery, *, delay: float) -> None:
        async with self._settling():
            await self._database.value(_GIVE_BACK, *delivery.receipt, 0, delay)

    @override
    async def bury(self, delivery: Delivery, reason: str) -> None:
        at = self._clock.now().isoformat(timespec="seconds")
        async with self._settling(), self._database.transaction():
            held = f"SELECT key FROM crag.task WHERE {_HELD} FOR UPDATE"
            if (key := await self._database.value(held, *delivery.receipt)) is None:
                return  # another worker has it, or has buried it
            # A new letter comes after the others.
            await self._database.value("DELETE FROM crag.dead_task WHERE key = $1", key)
            await self._database.value(_BURY, *delivery.receipt, reason, delivery.attempt, at)
            await self._database.value(f"DELETE FROM crag.task WHERE {_HELD}", *delivery.receipt)

    @override
    async def dead(self, *, workspace: str | None = None, limit: int = 100) -> list[DeadLetter]:
        async with _translating():
            rows = await self._database.all(_DEAD, workspace, None, limit)
        return [DeadLetter(str(row[0]), Task(*row[4:]), *row[1:4]) for row in map(tuple, rows)]

    @override
    async def revive(self, *, workspace: str | None = None, document_id: str | None = None) -> int:
        async with _translating(), self._database.transaction():
            rows = await self._database.all(
                f"DELETE FROM crag.dead_task WHERE {_CHOSEN} RETURNING {TASK}", workspace, document_id
            )
            await self.send([Task(*row) for row in rows])
            return len(rows)

    @override
    async def discard(self, *, workspace: str, document_id: str | None = None) -> None:
        async with _translating(), self._database.transaction():
            for table in ("task", "dead_task"):
                await self._database.value(f"DELETE FROM crag.{table} WHERE {_CHOSEN}", workspace, document_id)
            if document_id is None:
                await self._database.value("DELETE FROM crag.queue_turn WHERE workspace = $1", workspace)

    @override
    def leads(self) -> bool:
        return True

    @override
    async def stats(self) -> QueueStats:
        return await self._stats(None)

    @override
    async def stats_of(self, workspace: str) -> QueueStats:
        return await self._stats(workspace)

    @override
    async def close(self) -> None:
        """Give back the tasks in hand without counting an attempt. The database stays open."""
        with suppress(*FAILURES):  # their leases end by themselves
            await self._database.value(_RETURN_ALL, self._holder)

    async def _received(self, limit: int) -> list[Delivery]:
        async with _translating():
            dead = await self._dead_holders()
            # Tasks that were taken for an answer that was lost come back when their leases end.
            rows = await self._database.all(_RECEIVE, limit, self._lease_seconds, self._holder, dead, repeat=False)
        return [Delivery(Task(*row[3:]), row[2], (row[0], row[1])) for row in map(tuple, rows)]

    async def _dead_holders(self) -> list[str]:
        if self._clock.monotonic() - self._looked < _LOOK_SECONDS:
            return []
        self._looked = self._clock.monotonic()
        rows = await self._database.all(
            "SELECT DISTINCT holder FROM crag.task WHERE lease IS NOT NULL AND holder IS NOT NULL"
        )
        return [row[0] for row in rows if row[0] != self._holder and is_gone(row[0])]

    async def _stats(self, workspace: str | None) -> QueueStats:
        async with _translating():
            return QueueStats(*await self._database.one(_STATS, workspace))

    @asynccontextmanager
    async def _settling(self) -> AsyncIterator[None]:
        async with _translating():
            yield
        self._settled.set()


@asynccontextmanager
async def _translating() -> AsyncIterator[None]:
    """Raise failures of PostgreSQL as errors of the port."""
    try:
        yield
    except FAILURES as error:
        raise ServiceUnavailable("queue", f"The queue {meaning_of(error)[1]}.") from error


def _row(task: Task) -> tuple[str, str, str, int, str]:
    return task.workspace, task.document_id, task.content_hash, task.part, task.stage
