"""The time budget of one request."""

import time
from collections.abc import Callable


class Deadline:
    """Counts down from `seconds`; each step may take a share of what is left."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started = clock()
        self._ends = self._started + seconds

    def elapsed_ms(self) -> float:
        """Milliseconds since the budget was opened."""
        return (self._clock() - self._started) * 1000

    def remaining(self) -> float:
        """Seconds left, never below 0."""
        return max(0.0, self._ends - self._clock())

    def share(self, fraction: float) -> float:
        """Seconds that a step may take."""
        return self.remaining() * fraction
