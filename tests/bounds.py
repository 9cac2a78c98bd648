"""A bound on the CPU time that a block may take."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TooSlow(Exception):
    """The time is over."""


@contextmanager
def bounded(seconds: float = 2.0) -> Iterator[None]:
    """Raises `TooSlow` where the block takes longer.

    It counts CPU time, so that a busy machine does not matter. For 100,000 characters a linear expression takes some
    10 ms, and a quadratic one half a minute.
    """

    def end(_signal: int, _frame: FrameType | None) -> None:
        raise TooSlow

    former = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, former)
