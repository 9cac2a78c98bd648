"""Changed preferences of workspaces, for all processes."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from cachetools import LRUCache

from cragside.domain.errors import ServiceUnavailable, ValidationError
from cragside.domain.preferences import CHANGEABLE, Preferences

# Looks at all changed values of a workspace, and raises what is wrong with them.
Check = Callable[[Mapping[str, Any]], object]


def anything(_: Mapping[str, Any]) -> None:
    """The check that accepts all values."""


class PreferenceStore(Protocol):
    """Stores changes by workspace. It is cheap enough for every request."""

    async def changes(self, workspace: str) -> Mapping[str, Any]:
        """Return the changed values, by the names of the preferences."""

    def at_hand(self, workspace: str) -> Mapping[str, Any] | None:
        """Give the result of `changes` if it is known without waiting, else None."""
        return None

    async def change(self, workspace: str, changes: Mapping[str, Any], check: Check = anything) -> Mapping[str, Any]:
        """Add changes durably, and give all values as they are then. A value of None restores the default.

        `check` gets them while no other process can change them. If it raises an error, nothing changes.
        Raises `ValidationError` if the store is read-only, and `ServiceUnavailable("settings", ...)`.
        """


# Workspaces whose preferences are remembered for an outage of their store.
_REMEMBERED = 1000
_log = logging.getLogger("cragside")


class WorkspacePreferences:
    """Reads and changes preferences."""

    def __init__(self, defaults: Preferences, store: PreferenceStore) -> None:
        self._defaults = defaults
        self._store = store
        self._last: LRUCache[str, Preferences] = LRUCache(_REMEMBERED)

    async def of(self, workspace: str) -> Preferences:
        """Return the workspace's preferences. If its changes are invalid, they are logged, and the defaults apply."""
        return self._valid(workspace, await self._store.changes(workspace))

    def _valid(self, workspace: str, changes: Mapping[str, Any]) -> Preferences:
        try:
            return self._changed(changes) if changes else self._defaults
        except ValidationError as error:
            _log.warning("The saved settings of workspace %s are ignored: %s", workspace, error.message)
            return self._defaults

    async def at_hand(self, workspace: str, *, seconds: float) -> tuple[Preferences, str]:
        """Return the workspace's preferences, and "". A request goes on without their store, so nothing is raised.

        If they cannot be read within so many seconds: those that this process read last, else the defaults, and why.
        """
        if (known := self._store.at_hand(workspace)) is not None:  # every prompt asks, and a timer has its cost
            found = self._valid(workspace, known)
            if found is not self._defaults or workspace in self._last:  # an outage leaves the defaults without this
                self._last[workspace] = found
            return found, ""
        try:
            async with asyncio.timeout(seconds):
                found = self._last[workspace] = await self.of(workspace)
        except ServiceUnavailable as error:
            reason = error.message
        except TimeoutError:
            reason = f"No answer within {seconds:.1f} s."
        else:
            return found, ""
        return self._last.get(workspace, self._defaults), reason

    async def change(self, workspace: str, changes: Mapping[str, Any]) -> Preferences:
        """Change preferences; None restores the default.

        Raises `ValidationError` for a value out of range, and for one that does not fit the others, whoever changed
        those.
        """
        return self._changed(await self._store.change(workspace, changes, self._changed))

    def _changed(self, changes: Mapping[str, Any]) -> Preferences:
        unknown = changes.keys() - set(CHANGEABLE)
        if unknown:
            raise ValidationError(f"{min(unknown)} is not a setting that can be changed.", field=min(unknown))
        return self._defaults.changed(**changes)
