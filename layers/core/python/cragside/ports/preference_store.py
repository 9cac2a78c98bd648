"""Changed preferences of workspaces, for all processes."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

# Looks at all changed values of a workspace, and raises what is wrong with them.
Check = Callable[[Mapping[str, Any]], object]


def anything(_: Mapping[str, Any]) -> None:
    """The check that accepts all values."""


class PreferenceStore(Protocol):
    """Stores changes by workspace. It is cheap enough for every request."""

    async def changes(self, workspace: str) -> Mapping[str, Any]:
        """The changed values, by the names of the preferences."""

    def at_hand(self, workspace: str) -> Mapping[str, Any] | None:
        """What `changes` gives if that is known without waiting, else None."""
        return None

    async def change(self, workspace: str, changes: Mapping[str, Any], check: Check = anything) -> Mapping[str, Any]:
        """Add changes durably, and give all values as they are then. A value of None restores the default.

        `check` gets them while no other process can change them. If it raises an error, nothing changes.
        Raises `ValidationError` if the store is read-only, and `ServiceUnavailable("settings", ...)`.
        """
