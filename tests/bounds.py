"""Bounds on the CPU time that a block, or the reading of a text, may take."""

import signal
import time
from collections.abc import Callable, Iterator
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


def read_within(
    seconds: float, read: Callable[[str], object], text: Callable[[int], str], length: int = 100_000
) -> None:
    """Raises `TooSlow` where `text(length)` takes longer to read.

    A tenth of the text and then a third are read first. Each is proof enough where the whole text would be in time even
    if it took a hundred times as long as the tenth, or nine times as long as the third, as for a quadratic reading.
    """
    for part in (10, 3, 1):
        began = time.process_time()
        with bounded(seconds):
            read(text(length // part))
        if (time.process_time() - began) * part**2 < seconds:
            return
