"""Changed preferences of workspaces, shared by all processes."""

from collections.abc import Mapping
from typing import Any, Protocol


class PreferenceStore(Protocol):
    """Keeps the changes by workspace. Cheap enough to be asked by every request."""

    def changes(self, workspace: str) -> Mapping[str, Any]:
        """What was changed, by the names of the preferences."""

    def change(self, workspace: str, changes: Mapping[str, Any]) -> None:
        """Add changes, durably; a value of None goes back to the default.

        Raises `ValidationError` when nothing can be kept here, and `ServiceUnavailable("settings", ...)`.
        """
