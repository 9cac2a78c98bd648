"""Support for SnapStart: early loading, and new random numbers after each restore."""

import os
import random
import sys
from collections.abc import Callable

_TYPE = "AWS_LAMBDA_INITIALIZATION_TYPE"


def ahead() -> bool:
    """Whether INIT runs before any request waits for it, so that it should load everything."""
    return os.environ.get(_TYPE) in ("snap-start", "provisioned-concurrency")


def on_snapshot(before: Callable[[], None], after: Callable[[], None]) -> None:
    """Have the runtime call `before` its snapshot and `after` each restore, if it takes snapshots."""
    try:
        from snapshot_restore_py import register_after_restore, register_before_snapshot
    except ImportError:
        return
    register_before_snapshot(before)
    register_after_restore(after)


def reseed() -> None:
    """Give this copy of the snapshot its own random numbers. `uuid4` and `secrets` use the kernel's anyway."""
    random.seed()
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()
