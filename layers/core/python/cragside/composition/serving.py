"""Tells commands where `cragside serve` of the same home listens, so that they ask it instead of loading everything.

The service keeps a file in its home locked while it runs. A file that nobody has locked, that others could have
written, or that was written with other settings counts as none.
"""

import hashlib
import json
import os
import platform
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cragside import __version__
from cragside.databases.private_files import FILE_MODE, make_folder
from cragside.domain.addresses import Nearness, nearness

if TYPE_CHECKING:
    from cragside.settings import Settings

# The leading dot: no workspace can have this name.
_NAME = ".serving"
_LONGEST = 4096
# A command names its workspace in each request, and the file lies in the home.
_OWN = {"workspace", "home"}


@contextmanager
def announced(settings: "Settings", address: str) -> Iterator[None]:
    """Have commands with these settings ask the service at this address while the block runs.

    Of several services of one home, the first is asked. Nothing is announced where a command could not ask: a service
    that other machines alone can reach, tokens that commands do not have, a store that is not in files or is baked.
    """
    near = _near(address)
    path = _path_of(settings)
    descriptor = _locked(path) if near and path else None
    if path is None or descriptor is None:
        yield
        return
    process, held = os.getpid(), [descriptor]
    # A child that outlives the service must not keep the lock: the address could be anybody's by then.
    os.register_at_fork(after_in_child=lambda: _close(held))
    try:
        text = {"address": f"{near}{settings.path_prefix or ''}", "settings": _digest(settings)}
        os.write(descriptor, json.dumps(text).encode())
        yield
    finally:
        if os.getpid() == process:  # a fork may leave the block, too
            path.unlink(missing_ok=True)
        _close(held)


def serving_address(settings: "Settings") -> str | None:
    """Return where a service with this home and these settings listens, None if none runs."""
    path = _path_of(settings)
    if path is None:
        return None
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            return None
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _announced_in(os.read(descriptor, _LONGEST), _digest(settings))
    except OSError:
        return None
    else:
        return None  # its writer has ended
    finally:
        os.close(descriptor)


def _close(held: list[int]) -> None:
    while held:
        os.close(held.pop())


def _announced_in(content: bytes, digest: str) -> str | None:
    with suppress(ValueError, TypeError, KeyError, AttributeError):
        told = json.loads(content)
        if told["settings"] == digest:
            return _near(told["address"])
    return None


def _near(address: str) -> str | None:
    """Return the address as this machine reaches it without leaving itself, None if it does not."""
    here = address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
    return here if nearness(urlsplit(here).hostname or "") is Nearness.MACHINE else None


def _path_of(settings: "Settings") -> Path | None:
    if os.name != "posix" or settings.on_postgres or not isinstance(settings.store_place, Path):
        return None
    if settings.api_token_secret or settings.workspace_tokens or settings.tokens_file:
        return None
    return settings.store_place / _NAME


def _locked(path: Path) -> int | None:
    """Make and lock the file. None if another service has it, or the home is baked or cannot be written."""
    import fcntl

    from cragside.store.baked import is_baked

    try:
        if is_baked(path.parent):
            return None
        make_folder(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.stat().st_ino != os.fstat(descriptor).st_ino:
            raise FileNotFoundError(path)  # the service that ended meanwhile has removed this file
        os.fchmod(descriptor, FILE_MODE)
        os.ftruncate(descriptor, 0)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _digest(settings: "Settings") -> str:
    """Return equal text for equal settings on one machine. Secrets are masked in it."""
    place = platform.node()
    with suppress(OSError):  # containers may share a home, and have loopback addresses of their own
        place += str(Path("/proc/self/ns/net").readlink())
    given = sorted(settings.model_dump(exclude=_OWN).items())
    return hashlib.sha256(f"{__version__} {place} {given!r}".encode()).hexdigest()
