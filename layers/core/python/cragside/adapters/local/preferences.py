"""Preferences in a JSON file that all processes share."""

import asyncio
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from typing_extensions import override

from cragside.application.preferences import Check, PreferenceStore, anything
from cragside.databases.private_files import FILE_MODE, make_folder, replace_file
from cragside.domain.errors import ServiceUnavailable, ValidationError

# The leading dot: no workspace can have this name.
FILE_NAME = ".settings.json"
_WAIT_SECONDS = 5.0
_log = logging.getLogger("cragside")

_Stamp = tuple[int, int, int]


class PreferenceFile(PreferenceStore):
    """Keeps the changed settings of all workspaces in `folder/.settings.json`, which is replaced as a whole.

    The first change creates the file. If the file cannot be read, there are no changes, and the log says why.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._read: tuple[_Stamp, dict[str, dict[str, Any]]] | None = None

    @override
    async def changes(self, workspace: str) -> Mapping[str, Any]:
        return self.at_hand(workspace)

    @override
    def at_hand(self, workspace: str) -> Mapping[str, Any]:
        return self._all().get(workspace, {})

    @override
    async def change(self, workspace: str, changes: Mapping[str, Any], check: Check = anything) -> Mapping[str, Any]:
        # It waits for the disk and for other processes that change settings.
        return await asyncio.to_thread(self._change, workspace, changes, check)

    def _change(self, workspace: str, changes: Mapping[str, Any], check: Check) -> Mapping[str, Any]:
        try:
            make_folder(self._path.parent)
            with FileLock(f"{self._path}.lock", timeout=_WAIT_SECONDS, mode=FILE_MODE):
                everything = dict(self._undamaged())
                merged = {**everything.get(workspace, {}), **changes}
                new = everything[workspace] = {name: value for name, value in merged.items() if value is not None}
                check(new)
                kept = {name: changes for name, changes in everything.items() if changes}
                replace_file(self._path, json.dumps(kept, indent=2))
        except (OSError, Timeout) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise ServiceUnavailable("settings", f"The settings cannot be saved: {reason}.") from error
        return new

    def _undamaged(self) -> dict[str, dict[str, Any]]:
        """Return the saved preferences. Raises `ServiceUnavailable` for a damaged file, which no change may replace."""
        try:
            return self._stored()
        except (ValueError, RecursionError) as error:
            remedy = f"Restore {self._path.name} from a backup, or move it away"
            raise ServiceUnavailable("settings", f"The saved settings are damaged. {remedy}.") from error

    def _stored(self) -> dict[str, dict[str, Any]]:
        try:
            status = self._path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            if self._read is None or self._read[0] != stamp:
                self._read = stamp, _workspaces(json.loads(self._path.read_bytes()))
        except FileNotFoundError:
            return {}
        return self._read[1]

    def _all(self) -> dict[str, dict[str, Any]]:
        try:
            return self._stored()
        except (OSError, ValueError, RecursionError) as error:
            _log.warning("The saved settings in %s cannot be read: %s", self._path, type(error).__name__)
            return {}


class NoPreferences(PreferenceStore):
    """The preferences of a read-only store: the settings apply."""

    @override
    async def changes(self, workspace: str) -> Mapping[str, Any]:
        return {}

    @override
    def at_hand(self, workspace: str) -> Mapping[str, Any]:
        return {}

    @override
    async def change(self, workspace: str, changes: Mapping[str, Any], check: Check = anything) -> Mapping[str, Any]:
        raise ValidationError(
            "This knowledge base is read-only. Change its settings in the environment and restart it."
        )


def _workspaces(content: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(content, dict) or not all(isinstance(changes, dict) for changes in content.values()):
        raise ValueError("not an object of objects")
    return content
