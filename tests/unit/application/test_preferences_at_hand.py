"""The preferences of a workspace for a request, which does not fail with their store."""

import asyncio
from collections.abc import Mapping
from typing import Any

from cragside.adapters.local.preferences import NoPreferences
from cragside.application.preferences import WorkspacePreferences
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.preferences import Preferences

DEFAULTS = Preferences(1000, 200, 5, None, "similarity")


class Flaky(NoPreferences):
    """A store that has a change, until it is down or hangs."""

    state = "up"

    def at_hand(self, workspace: str) -> Mapping[str, Any] | None:
        return {"mode": "off"} if self.state == "knowing" else None

    async def changes(self, workspace: str) -> Mapping[str, Any]:
        if self.state == "down":
            raise ServiceUnavailable("settings", "The store of settings does not answer.")
        if self.state == "hanging":
            await asyncio.Event().wait()
        return {"mode": "off"} if workspace == "quiet" else {}


async def test_an_outage_leaves_what_was_read_last() -> None:
    store = Flaky()
    preferences = WorkspacePreferences(DEFAULTS, store)
    known, reason = await preferences.at_hand("quiet", seconds=5)
    assert (known.mode, reason) == ("off", "")
    store.state = "down"
    again, reason = await preferences.at_hand("quiet", seconds=5)
    assert (again, reason) == (known, "The store of settings does not answer.")


async def test_a_store_that_knows_without_waiting_is_not_waited_for() -> None:
    store = Flaky()
    preferences = WorkspacePreferences(DEFAULTS, store)
    store.state = "knowing"
    known, reason = await preferences.at_hand("quiet", seconds=0)
    assert (known.mode, reason) == ("off", "")
    store.state = "down"
    assert (await preferences.at_hand("quiet", seconds=5))[0] == known


async def test_a_store_that_hangs_leaves_the_defaults_to_a_new_process() -> None:
    store = Flaky()
    store.state = "hanging"
    found, reason = await WorkspacePreferences(DEFAULTS, store).at_hand("quiet", seconds=0.01)
    assert found == DEFAULTS
    assert reason.startswith("No answer within")
