"""Times the calls of chat models, so that nobody waits again for one that was too slow."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from cachetools import TTLCache

from cragside.adapters.model_host.text_host import TextHost
from cragside.ports.clock import SYSTEM_CLOCK, Clock

Task = Literal["judge", "rewrite", "complete"]

# Wait no longer for a model where rules can replace it.
_PATIENCE = 4.0
_REMEMBERED = 256
# A slow model is tried again after this time: the machine may have had other work.
_SECONDS = 600.0


class Paces:
    """The seconds that each model needed for its last call of a kind."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._seconds: TTLCache[tuple[str, Task], float] = TTLCache(_REMEMBERED, _SECONDS, timer=clock.monotonic)
        self._loaded: TTLCache[str, bool] = TTLCache(_REMEMBERED, _SECONDS, timer=clock.monotonic)

    async def reply(self, host: TextHost, task: Task, requested: str | None, prompt: str, **asked: Any) -> str | None:
        """The answer of the model that `host` chooses; None if there is none, or rules are to replace a slow one.

        `asked` is as for `TextHost.chat`.
        """
        model = await host.choose(requested)
        if model is None or self.seconds(model, task) > _PATIENCE:
            return None
        with self.measured(model, task):
            return (await host.chat(model, prompt, **asked)).text

    def seconds(self, model: str, task: Task) -> float:
        """The seconds of the last call; 0.0 if there was none in ten minutes."""
        return self._seconds.get((model, task), 0.0)

    def loaded(self, model: str) -> None:
        """Note that a model is loaded, so that its next call is measured."""
        self._loaded[model] = True

    @contextmanager
    def measured(self, model: str, task: Task) -> Iterator[None]:
        """Time a call. One that was given up has taken at least its time, and one that failed says nothing.

        Some hosts load a model during its first call, which therefore says nothing either.
        """
        started, known = self._clock.monotonic(), model in self._loaded
        self._loaded[model] = True
        try:
            yield
        except asyncio.CancelledError:
            self._note(model, task, started, known)
            raise
        self._note(model, task, started, known)

    def _note(self, model: str, task: Task, started: float, known: bool) -> None:
        if known:
            self._seconds[model, task] = self._clock.monotonic() - started
