"""Chooses tasks so that workspaces take turns and text becomes searchable soon.

The workspace with the fewest tasks in hand is next, then the one whose last turn was longest ago. `embed` goes before
`enrich`, and `enrich` leaves places free for text that arrives meanwhile. But no workspace waits until all text of
another one is embedded. A document is embedded before it is annotated.
"""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

from dataclasses import dataclass

from cragside.domain.indexing import Stage, Task
from cragside.store.queues.driver import Statements

TASK = "workspace, document_id, content_hash, part, stage"
# A task that this many workers died with is handed out alone. From then on, each death counts as an attempt.
DEATHS_TOLERATED = 3
# A task may be handed out if it is due and no task of its group is in hand. No delay is of an hour: a task that is due
# later was noted by a clock that was ahead.
_DUE = """lease IS NULL
    AND (due <= clock_timestamp() OR due > clock_timestamp() + make_interval(secs => 3600))"""
_CHOSEN = f"id, attempts, {TASK}"
_STATE = f"""SELECT count(*), count(*) FILTER (WHERE deaths >= {DEATHS_TOLERATED}),
    (SELECT coalesce(max(number), 0) FROM crag.queue_turn)
    FROM crag.task WHERE lease IS NOT NULL AND holder = $1"""
# `deaths > 0` is what the index of such tasks knows.
_SUSPECT = f"""SELECT {_CHOSEN}, 0 FROM crag.task WHERE deaths > 0 AND deaths >= {DEATHS_TOLERATED} AND {_DUE}
    AND grp NOT IN (SELECT grp FROM crag.task WHERE lease IS NOT NULL) ORDER BY due LIMIT 1"""
_NOTE = """INSERT INTO crag.queue_turn VALUES ($1, $2)
    ON CONFLICT (workspace) DO UPDATE SET number = excluded.number"""


def _in_turn(stage: Stage) -> str:
    """Return the statement that finds at most `$1` tasks of a stage. `$2` are tasks that count as in hand.

    Finding the waiting workspaces takes one step in an index for each, however many tasks it has. The last column is
    how many tasks the workspace had in hand before, plus one for the workspace that had the last turn.
    """
    embedded = """ AND NOT EXISTS (SELECT 1 FROM crag.task AS other WHERE other.workspace = ready.workspace
        AND other.document_id = ready.document_id AND other.stage = 'embed')"""
    ready = f"""FROM crag.task AS ready WHERE ready.workspace = turn.workspace AND ready.stage = '{stage}' AND {_DUE}
        AND grp NOT IN (SELECT grp FROM in_hand){embedded if stage == "enrich" else ""}"""
    return f"""WITH RECURSIVE waiting AS (
        SELECT (SELECT workspace FROM crag.task WHERE lease IS NULL ORDER BY workspace LIMIT 1) AS workspace
        UNION ALL
        SELECT (SELECT task.workspace FROM crag.task WHERE lease IS NULL AND task.workspace > waiting.workspace
            ORDER BY task.workspace LIMIT 1)
        FROM waiting WHERE waiting.workspace IS NOT NULL),
    in_hand AS (
        SELECT workspace, grp FROM crag.task WHERE lease IS NOT NULL
        UNION ALL SELECT workspace, grp FROM crag.task WHERE id = ANY($2)),
    held AS (SELECT workspace, count(*) AS tasks FROM in_hand GROUP BY workspace),
    turn AS (
        SELECT waiting.workspace, coalesce(number, 0) AS number, coalesce(held.tasks, 0)
            + CASE WHEN number = (SELECT max(number) FROM crag.queue_turn) THEN 1 ELSE 0 END AS taken
        FROM waiting LEFT JOIN crag.queue_turn ON queue_turn.workspace = waiting.workspace
        LEFT JOIN held ON held.workspace = waiting.workspace WHERE waiting.workspace IS NOT NULL),
    next AS (
        SELECT * FROM turn WHERE EXISTS (SELECT 1 {ready}) ORDER BY taken, number, workspace LIMIT $1)
    SELECT {", ".join(f"task.{name}" for name in _CHOSEN.split(", "))},
        taken + row_number() OVER (PARTITION BY task.workspace ORDER BY task.id) - 1 AS before
    FROM next AS turn JOIN crag.task ON task.id = ANY(ARRAY(SELECT ready.id {ready} ORDER BY ready.id LIMIT $1))
    ORDER BY before, turn.number, turn.workspace LIMIT $1"""


EMBED, ENRICH = _in_turn("embed"), _in_turn("enrich")


@dataclass(frozen=True, slots=True)
class Turn:
    """A task that is next. `before` is how many tasks its workspace had taken before."""

    id: int
    attempts: int
    task: Task
    before: int


async def next_tasks(statements: Statements, holder: str, limit: int) -> list[Turn]:
    """Choose at most `limit` tasks for a receiver, and note the turns."""
    [[busy, suspects_in_hand, number]] = await statements.all(_STATE, holder)
    if suspects_in_hand:
        return []
    if suspect := await _turns(statements, _SUSPECT):
        chosen = [] if busy else suspect
    else:
        chosen = await _both_stages(statements, limit, busy > 0)
    if chosen:
        last = {turn.task.workspace: number + place for place, turn in enumerate(chosen, start=1)}
        await statements.many(_NOTE, list(last.items()))
    return chosen


async def _both_stages(statements: Statements, limit: int, busy: bool) -> list[Turn]:
    embeds = await _turns(statements, EMBED, limit, [])
    taken = [turn.id for turn in embeds]
    if len(embeds) < limit:
        # Half of the free places stay free for text that arrives while models are at work.
        room = min(limit - len(embeds), max(limit // 2, 0 if busy or embeds else 1))
        return embeds + (await _turns(statements, ENRICH, room, taken) if room else [])
    # No workspace gets a second task before another one gets its first.
    first, later = [turn for turn in embeds if not turn.before], [turn for turn in embeds if turn.before]
    if not later:
        return first
    annotating = [turn for turn in await _turns(statements, ENRICH, len(later), taken) if not turn.before]
    return first + annotating + later[: len(later) - len(annotating)]


async def _turns(statements: Statements, sql: str, *values: object) -> list[Turn]:
    rows = await statements.all(sql, *values)
    return [Turn(row[0], row[1], Task(*row[2:7]), row[7]) for row in map(tuple, rows)]
