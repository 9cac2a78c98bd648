"""The folders of the workspaces below RAG_HOME, whatever else is there."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from cragside.domain.errors import ServiceUnavailable, ValidationError
from cragside.domain.names import store_name
from cragside.store.ledger.sqlite.database import FILE_NAME


class WorkspaceFolders:
    """Finds the folder of each workspace. An unreadable folder affects only its own workspace.

    Names are in lower case. A folder whose name has capitals belongs to its workspace as long as there is only one.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        # The folders with capitals in their names, by workspace, and when the home was looked through for them.
        self._capitals: tuple[int, dict[str, list[str]]] | None = None

    def of(self, workspace: str) -> Path:
        """Return the folder of a workspace, whether or not it is there.

        Raises `ServiceUnavailable` when two stores have this name but for the case.
        """
        own = self._home / workspace
        others = [self._home / name for name in self._with_capitals().get(workspace, ()) if name != workspace]
        stores = [folder for folder in (own, *others) if _holds_store(folder)]
        distinct = {_identity(folder): folder for folder in reversed(stores)}
        if len(distinct) > 1:
            names = " and ".join(sorted(folder.name for folder in distinct.values()))
            raise ServiceUnavailable(
                "knowledge_base",
                f"Workspace {workspace} has two stores, {names}: names that differ in case only are one workspace. "
                "Rename one of these folders in RAG_HOME to another workspace's name.",
            )
        return next(iter(distinct.values()), own)

    def names(self) -> list[str]:
        """List the workspaces that have a store, in order."""
        return sorted({name for entry in self._entries() if (name := _name_of(entry)) and _holds_store(entry)})

    def refused(self) -> list[str]:
        """Folders with a store whose name no workspace can have any more, in order."""
        return sorted(entry.name for entry in self._entries() if not _name_of(entry) and _holds_store(entry))

    def _with_capitals(self) -> dict[str, list[str]]:
        try:
            changed = self._home.stat().st_mtime_ns
        except OSError:
            return {}
        if self._capitals is None or self._capitals[0] != changed:
            found: dict[str, list[str]] = {}
            for entry in self._entries():
                if entry.name != entry.name.lower() and (name := _name_of(entry)):
                    found.setdefault(name, []).append(entry.name)
            self._capitals = changed, found
        return self._capitals[1]

    def _entries(self) -> list[Path]:
        """Without what begins with a dot, which is no workspace's."""
        try:
            return [self._home / name for name in os.listdir(self._home) if not name.startswith(".")]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise ServiceUnavailable(
                "knowledge_base", f"The folder of the stores cannot be read: {error.strerror}. Check RAG_HOME."
            ) from error


def check_store_file(folder: Path) -> None:
    """Raises `ServiceUnavailable` when something else than a folder, or than a store's file, has its place."""
    with suppress(FileNotFoundError):
        if not stat.S_ISDIR(folder.stat().st_mode):
            raise ServiceUnavailable("knowledge_base", _in_the_way(folder.name, "folder"))
        if not stat.S_ISREG((folder / FILE_NAME).stat().st_mode):
            raise ServiceUnavailable("knowledge_base", _in_the_way(f"{folder.name}/{FILE_NAME}", "file"))


def _in_the_way(name: str, wanted: str) -> str:
    return f"{name} in RAG_HOME is not a {wanted}. Move it elsewhere: cragside needs this path for a workspace's store."


def _name_of(folder: Path) -> str:
    """Return the workspace of a folder, "" for none."""
    try:
        return store_name(folder.name)
    except ValidationError:
        return ""


def _holds_store(folder: Path) -> bool:
    """Return True if something has the place of the store's file, or if the folder cannot be read."""
    try:
        (folder / FILE_NAME).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _identity(folder: Path) -> object:
    """Equal for names of one folder, on a disk that does not tell cases apart."""
    try:
        status = folder.stat()
    except OSError:
        return folder.name
    return status.st_dev, status.st_ino
