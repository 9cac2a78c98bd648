"""Changed preferences of workspaces, for all processes."""

from collections.abc import Mapping
from typing import Any, Protocol


class PreferenceStore(Protocol):
    """Stores changes by workspace. It is cheap enough for every request."""

    async def changes(self, workspace: str) -> Mapping[str, Any]:
        """The changed values, by the names of the preferences."""

    async def change(self, workspace: str, changes: Mapping[str, Any]) -> None:
        """Add changes durably. A value of None restores the default.

        Raises `ValidationError` if the store is read-only, and `ServiceUnavailable("settings", ...)`.
        """
