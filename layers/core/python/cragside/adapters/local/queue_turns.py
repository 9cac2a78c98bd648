"""The order in which the local queue hands out tasks."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

import sqlite3
from collections import Counter
from collections.abc import Iterator
from heapq import heapify, heappop, heapreplace
from typing import Any

from cragside.domain.indexing import Stage

TASK = "workspace, document_id, content_hash, part, stage"
# A task that this many workers died with is handed out alone. From then on, each death counts as an attempt.
DEATHS_TOLERATED = 3
_MOST_REMEMBERED = 10_000
# A task may be handed out if it is due and no task of its group is in hand.
_READY = (
    f"SELECT id, attempts, {TASK} FROM task WHERE workspace = ? AND stage = ? AND lease IS NULL AND due <= ? "
    "AND grp NOT IN (SELECT grp FROM task WHERE lease IS NOT NULL)"
)
_EMBEDDED = (
    " AND NOT EXISTS (SELECT 1 FROM task AS other WHERE other.workspace = task.workspace"
    " AND other.document_id = task.document_id AND other.stage = 'embed')"
)
_OLDEST_FIRST = " ORDER BY id LIMIT ?"
_READY_IN = {"embed": _READY + _OLDEST_FIRST, "enrich": _READY + _EMBEDDED + _OLDEST_FIRST}

Turn = tuple[int, Any]  # how many tasks the workspace had taken before, and the row of the task


class QueueTurns:
    """Chooses tasks so that workspaces take turns and text becomes searchable soon.

    The workspace with the fewest tasks in hand is next, then the one whose last turn was longest ago. `embed` goes
    before `enrich`, and `enrich` leaves places free for text that arrives meanwhile. But no workspace waits until all
    text of another one is embedded. A document is embedded before it is annotated.
    """

    def __init__(self) -> None:
        self._last_turns: dict[str, int] = {}  # by workspace; the latest is at the end
        self._turns = 0

    def next_tasks(self, connection: sqlite3.Connection, limit: int, now: float) -> list[Any]:
        """Return the rows of at most `limit` tasks to hand out: id, attempts, and the columns of `TASK`."""
        in_hand, suspects_in_hand = connection.execute(
            "SELECT count(*), count(*) FILTER (WHERE deaths >= ?) FROM task WHERE lease IS NOT NULL",
            (DEATHS_TOLERATED,),
        ).fetchone()
        if suspects_in_hand:
            return []
        suspect = connection.execute(
            f"SELECT id, attempts, {TASK} FROM task WHERE deaths >= ? AND due <= ? ORDER BY due LIMIT 1",
            (DEATHS_TOLERATED, now),
        ).fetchall()
        if suspect:
            return [] if in_hand else suspect
        chosen = self._both_stages(connection, limit, now, in_hand > 0)
        for _, row in chosen:
            self._last_turns.pop(row[2], None)
            self._turns += 1
            self._last_turns[row[2]] = self._turns
        while len(self._last_turns) > _MOST_REMEMBERED:
            del self._last_turns[next(iter(self._last_turns))]
        return [row for _, row in chosen]

    def _both_stages(self, connection: sqlite3.Connection, limit: int, now: float, busy: bool) -> list[Turn]:
        taken = self._taken(connection)
        embeds = self._in_turn(connection, "embed", limit, now, taken)
        if len(embeds) < limit:
            # Half of the free places stay free for text that arrives while models are at work.
            room = min(limit - len(embeds), max(limit // 2, 0 if busy or embeds else 1))
            return embeds + self._in_turn(connection, "enrich", room, now, taken)
        # No workspace gets a second task before another one gets its first.
        first, later = [turn for turn in embeds if not turn[0]], [turn for turn in embeds if turn[0]]
        annotating = [turn for turn in self._in_turn(connection, "enrich", len(later), now, taken) if not turn[0]]
        return first + annotating + later[: len(later) - len(annotating)]

    def _taken(self, connection: sqlite3.Connection) -> Counter[str]:
        """Count the tasks that each workspace has in hand, plus one for the workspace that had the last turn."""
        sql = "SELECT workspace, count(*) FROM task WHERE lease IS NOT NULL GROUP BY workspace"
        taken = Counter[str](dict(connection.execute(sql).fetchall()))
        if self._last_turns:
            taken[next(reversed(self._last_turns))] += 1
        return taken

    def _in_turn(
        self, connection: sqlite3.Connection, stage: Stage, limit: int, now: float, taken: Counter[str]
    ) -> list[Turn]:
        """Return at most `limit` tasks of a stage, in turns, each workspace's oldest first, and add them to `taken`."""
        if limit <= 0:
            return []
        lines = [(taken[name], self._last_turns.get(name, 0), name) for name in _waiting_workspaces(connection)]
        heapify(lines)
        rows: dict[str, Iterator[Any]] = {}
        turns: list[Turn] = []
        while lines and len(turns) < limit:
            count, last_turn, name = lines[0]
            if name not in rows:
                rows[name] = iter(connection.execute(_READY_IN[stage], (name, stage, now, limit)).fetchall())
            if (row := next(rows[name], None)) is None:
                heappop(lines)
                continue
            turns.append((count, row))
            taken[name] += 1
            heapreplace(lines, (count + 1, last_turn, name))
        return turns


def _waiting_workspaces(connection: sqlite3.Connection) -> Iterator[str]:
    """Return the workspaces with waiting tasks. Each takes one step in an index, however many tasks it has."""
    name = ""
    sql = "SELECT workspace FROM task WHERE workspace > ? AND lease IS NULL ORDER BY workspace LIMIT 1"
    while row := connection.execute(sql, (name,)).fetchone():
        name = row[0]
        yield name
