"""Preferences in PostgreSQL, which all servers share."""

import asyncio
import json
from collections.abc import Mapping
from contextvars import Context
from typing import Any

from typing_extensions import override

from cragside.application.preferences import Check, PreferenceStore, anything
from cragside.databases.postgres.connections import FAILURES, meaning_of
from cragside.databases.postgres.database import PostgresDatabase
from cragside.domain.errors import ServiceUnavailable
from cragside.ports.clock import SYSTEM_CLOCK, Clock

# Every request asks. A change of another server applies after so many seconds.
_FRESH_SECONDS = 2.0
_CHANGE = """INSERT INTO crag.preference VALUES ($1, jsonb_strip_nulls($2::text::jsonb))
    ON CONFLICT (workspace) DO UPDATE SET changes = jsonb_strip_nulls(preference.changes || $2::text::jsonb)
    RETURNING changes"""


class PostgresPreferences(PreferenceStore):
    """Keeps the changed settings of all workspaces, which are read together."""

    def __init__(self, database: PostgresDatabase, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._database = database
        self._known: dict[str, Mapping[str, Any]] = {}
        self._read = -_FRESH_SECONDS
        # All requests of a moment wait for one statement.
        self._reading: asyncio.Task[dict[str, Mapping[str, Any]]] | None = None

    @override
    async def changes(self, workspace: str) -> Mapping[str, Any]:
        if (fresh := self.at_hand(workspace)) is not None:
            return fresh
        loop, reading = asyncio.get_running_loop(), self._reading
        if reading is None or reading.done() or reading.get_loop() is not loop:
            # It outlives the request that begins it, and has no part in a transaction of its.
            reading = self._reading = loop.create_task(self._all(), context=Context())
        known = await asyncio.shield(reading)
        if self._reading is reading:  # else it may have been read before a change
            self._known, self._read = known, self._clock.monotonic()
        return known.get(workspace, {})

    @override
    def at_hand(self, workspace: str) -> Mapping[str, Any] | None:
        return self._known.get(workspace, {}) if self._clock.monotonic() - self._read < _FRESH_SECONDS else None

    @override
    async def change(self, workspace: str, changes: Mapping[str, Any], check: Check = anything) -> Mapping[str, Any]:
        try:
            async with self._database.transaction():
                # The row is locked from here on.
                stored = await self._database.value(_CHANGE, workspace, json.dumps(dict(changes)))
                new: dict[str, Any] = json.loads(stored)
                check(new)
                await self._database.value(
                    "DELETE FROM crag.preference WHERE workspace = $1 AND changes = '{}'", workspace
                )
        except FAILURES as error:
            raise ServiceUnavailable("settings", f"The settings cannot be saved: {meaning_of(error)[0]}.") from error
        self._reading = None
        self._read = -_FRESH_SECONDS
        return new

    async def _all(self) -> dict[str, Mapping[str, Any]]:
        try:
            rows = await self._database.all("SELECT workspace, changes FROM crag.preference")
        except FAILURES as error:
            raise ServiceUnavailable("settings", f"The store of settings {meaning_of(error)[1]}.") from error
        return {row[0]: json.loads(row[1]) for row in rows}
