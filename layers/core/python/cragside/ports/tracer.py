"""Traces of runs, for a collector."""

from contextlib import AbstractContextManager
from typing import Protocol

from cragside.domain.outcome import RagContext
from cragside.domain.steps import Step


class Trace(Protocol):
    """The trace of one run. It gets no question, no evidence and no secret."""

    def step(self, step: Step) -> None:
        """Note a step that has just ended."""

    def found(self, context: RagContext) -> None:
        """Note the outcome of the run."""


class Tracer(Protocol):
    """Traces runs. It never makes a run fail or wait."""

    def run(self) -> AbstractContextManager[Trace]:
        """The trace of a run, which lasts as long as this block."""

    def flush(self) -> None:
        """Have what has ended sent, for a process that is frozen afterwards. It waits a second at most."""

    def called(self, request_id: str, traceparent: str) -> AbstractContextManager[None]:
        """Runs in this block belong to the request, and to the trace of W3C's `traceparent` unless it is empty."""
