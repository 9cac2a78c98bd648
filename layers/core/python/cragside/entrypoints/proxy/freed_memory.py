"""Returns freed memory to the system. glibc keeps what many stalled streams took, since other memory lies behind it."""

import ctypes
import sys


def give_back() -> None:
    """Return what is free, where glibc is the allocator. It takes some 10 ms without Python's lock: use a thread."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
