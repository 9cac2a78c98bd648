"""SnapStart: what is done ahead of the snapshot, and what must not come out of it twice."""

import os
import random
import sys
from collections.abc import Callable

_TYPE = "AWS_LAMBDA_INITIALIZATION_TYPE"


def ahead() -> bool:
    """Whether INIT happens before anybody waits for it, so that everything heavy belongs there."""
    return os.environ.get(_TYPE) in ("snap-start", "provisioned-concurrency")


def on_snapshot(before: Callable[[], None], after: Callable[[], None]) -> None:
    """Have the runtime call `before` ahead of its snapshot and `after` each restore, if it takes snapshots."""
    try:
        from snapshot_restore_py import register_after_restore, register_before_snapshot
    except ImportError:
        return
    register_before_snapshot(before)
    register_after_restore(after)


def reseed() -> None:
    """Give this copy of the snapshot random numbers of its own; `uuid4` and `secrets` have the kernel's."""
    random.seed()
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()
