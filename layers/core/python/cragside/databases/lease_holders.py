"""Names for who holds a lease, from which others see whether the holder still lives."""

import os
import re
import uuid
from pathlib import Path

_PROCESS = uuid.uuid4().hex


def new_holder() -> str:
    """Return a name for a holder in this process, from which other processes of this machine see when it is gone."""
    return f"{_machine()} {os.getpid()} {_PROCESS} {uuid.uuid4().hex}"


def is_gone(holder: str) -> bool:
    """Tell if the holder's process has ended. False if that is not known, as for processes of other machines.

    A wrong answer does no harm: a holder that lives loses its lease, and what it writes then is refused.
    """
    named = re.fullmatch(r"(\S*) (\d{1,9}) (\S+) \S+", holder)
    if named is None or named[1] != _machine() or os.name != "posix":
        return False
    _, pid, process = named.groups()
    if int(pid) == os.getpid():
        # In a container that was restarted, the new process often has the number of the old one.
        return process != _PROCESS
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _machine() -> str:
    """The running system, and within it the namespace of process numbers; "" where the system has no names for them."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}-{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return os.uname().nodename.replace(" ", "-") if hasattr(os, "uname") else ""
