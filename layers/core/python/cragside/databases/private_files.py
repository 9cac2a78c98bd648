"""Folders and files that only the current user can read: modes 0700 and 0600, whatever the umask."""

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

FOLDER_MODE = 0o700
FILE_MODE = 0o600


def make_folder(path: Path) -> None:
    """Make a folder and its missing parents. Existing folders keep their permissions. Raises `OSError`."""
    if path.is_dir():
        return
    if path.parent != path:
        make_folder(path.parent)
    try:
        path.mkdir(mode=FOLDER_MODE)
    except FileExistsError:
        # Another process made it meanwhile, or it is not a folder.
        if not path.is_dir():
            raise


def make_file(path: Path) -> None:
    """Make an empty file. Raises `FileExistsError` and other `OSError`s."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE))


def replace_file(path: Path, text: str) -> None:
    """Replace a file as a whole: readers see the old text or the new one. Raises `OSError`."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # creates it with mode 0600
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def tighten(*paths: Path) -> None:
    """Remove the permissions of other users, which older versions granted.

    Files of other users stay as they are, and so do files whose permissions cannot be changed.
    """
    for path in paths:
        with suppress(OSError):
            status = path.stat()
            ours = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
            kind = stat.S_IFMT(status.st_mode)
            if ours and kind in (stat.S_IFREG, stat.S_IFDIR) and status.st_mode & 0o077:
                path.chmod(stat.S_IMODE(status.st_mode) & ~0o077)


def tighten_folder(folder: Path) -> None:
    """Apply `tighten` to a folder and the files in it."""
    tighten(folder)
    with suppress(OSError):
        tighten(*(Path(entry.path) for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False)))
