"""The use case: a workspace's preferences, which are the settings unless they were changed."""

import logging
from collections.abc import Mapping
from typing import Any

from cragside.domain.errors import ValidationError
from cragside.domain.preferences import CHANGEABLE, Preferences
from cragside.ports.preference_store import PreferenceStore

_log = logging.getLogger("cragside")


class WorkspacePreferences:
    """Reads and changes preferences. `defaults` hold where nothing was changed."""

    def __init__(self, defaults: Preferences, store: PreferenceStore) -> None:
        self._defaults = defaults
        self._store = store

    def of(self, workspace: str) -> Preferences:
        """What holds for the workspace. Changes that cannot be are reported in the log, and the defaults hold."""
        changes = self._store.changes(workspace)
        try:
            return self._changed(changes) if changes else self._defaults
        except ValidationError as error:
            _log.warning("The saved settings of workspace %s are left aside: %s", workspace, error.message)
            return self._defaults

    def change(self, workspace: str, changes: Mapping[str, Any]) -> Preferences:
        """Change what is named; None goes back to the default. Raises `ValidationError` for a value out of range."""
        merged = {**self._store.changes(workspace), **changes}
        new = self._changed({name: value for name, value in merged.items() if value is not None})
        self._store.change(workspace, changes)
        return new

    def _changed(self, changes: Mapping[str, Any]) -> Preferences:
        unknown = changes.keys() - set(CHANGEABLE)
        if unknown:
            raise ValidationError(f"{min(unknown)} is no setting that can be changed.", field=min(unknown))
        return self._defaults.changed(**changes)
