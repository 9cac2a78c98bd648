"""What a search goes on without, told from deep inside it to whoever asked."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from cragside.domain.outcome import Degradation

_noted: ContextVar[list[Degradation] | None] = ContextVar("left_out", default=None)


def leave_out(component: str, reason: str) -> None:
    """Note that the search under way goes on without a component. Nothing happens if nobody wants to know."""
    noted = _noted.get()
    if noted is not None and component not in {each.component for each in noted}:
        noted.append(Degradation(component, reason))


@contextmanager
def left_out() -> Iterator[list[Degradation]]:
    """What searches in this block, and in tasks that it starts, leave out. The list fills while they run."""
    noted: list[Degradation] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)
