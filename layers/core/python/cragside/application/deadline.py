"""The time budget of one request."""

from cragside.ports.clock import SYSTEM_CLOCK, Clock


class Deadline:
    """Counts down from `seconds`. Each step may take a share of the remaining time."""

    def __init__(self, seconds: float, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._started = clock.monotonic()
        self._ends = self._started + seconds

    def elapsed_ms(self) -> float:
        """Milliseconds since the start."""
        return (self._clock.monotonic() - self._started) * 1000

    def remaining(self) -> float:
        """Remaining seconds, never below 0."""
        return max(0.0, self._ends - self._clock.monotonic())

    def share(self, fraction: float) -> float:
        """The seconds of a step that gets this fraction of the remaining time."""
        return self.remaining() * fraction
