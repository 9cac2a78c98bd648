"""Settings of glibc's memory allocator, with which freed memory goes back to the system."""

import ctypes
import os
from collections.abc import Mapping

# glibc gives each thread its own heap. It also raises its threshold for blocks of their own after large ones are freed;
# smaller blocks then leave holes in the heaps. Neither is faster here.
HEAP_SETTINGS: Mapping[str, str] = {
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": "131072",
    "MALLOC_TRIM_THRESHOLD_": "131072",
}
# From glibc's malloc.h.
_PARAMETERS = {"MALLOC_ARENA_MAX": -8, "MALLOC_MMAP_THRESHOLD_": -3, "MALLOC_TRIM_THRESHOLD_": -1}


def keep_heaps_small() -> None:
    """Apply `HEAP_SETTINGS` to this process, except those that its environment has. Call this before threads start.

    Does nothing without glibc.
    """
    allocator = _glibc()
    if allocator is None:
        return
    for name, value in HEAP_SETTINGS.items():
        if name not in os.environ:
            allocator.mallopt(_PARAMETERS[name], int(value))


def _glibc() -> ctypes.CDLL | None:
    """The C library, if it is glibc: others have no `mallopt`, or one with other numbers."""
    try:
        version = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, ValueError, OSError):  # Windows has no confstr; macOS and musl do not know the name
        return None
    return ctypes.CDLL(None) if version.startswith("glibc") else None
