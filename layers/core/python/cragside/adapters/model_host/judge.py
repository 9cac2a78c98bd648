"""Judges passages with a chat model of the host, each by itself."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from cachetools import TTLCache
from typing_extensions import override

from cragside.adapters.model_host import judging
from cragside.adapters.model_host.paces import Paces
from cragside.adapters.model_host.text_host import TextHost
from cragside.application.grading import PassageJudge
from cragside.domain.document import Document
from cragside.domain.errors import ServiceUnavailable
from cragside.ports.clock import SYSTEM_CLOCK, Clock

# Smaller models did not tell passages apart (evals/README.md).
LEAST_PARAMETERS = 1_000_000_000
_MODELS_REMEMBERED = 64
_LEARNT_SECONDS = 600.0
_MOST_FAILURES = 5
# Between two tries of a slow model beside requests.
_AGAIN_SECONDS = 30.0


class HostedJudge(PassageJudge):
    """Judges by the probability of the answer's first token, where the host tells it; else by a score in JSON."""

    def __init__(
        self, host: TextHost, paces: Paces, *, least_parameters: int = LEAST_PARAMETERS, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._host = host
        self._least = least_parameters
        self._paces = paces
        self._clock = clock
        # How often a model gave no judgement, since it gave one.
        self._failures: TTLCache[str, int] = TTLCache(_MODELS_REMEMBERED, _LEARNT_SECONDS, timer=clock.monotonic)
        self._again: asyncio.Task[None] | None = None
        self._tried = -_AGAIN_SECONDS
        # Models whose host tells no probabilities. An answer that is neither yes nor no may be the passage's doing.
        self._scoring: TTLCache[str, bool] = TTLCache(_MODELS_REMEMBERED, _LEARNT_SECONDS, timer=clock.monotonic)

    @override
    async def ready(self, requested: str | None) -> str | None:
        with _graders_failures():
            model = await self._host.choose(requested)
            if model is None or self._failures.get(model, 0) >= _MOST_FAILURES:
                return None
            if (await self._host.parameters(model) or self._least) < self._least:
                return None
            if await self._host.window(model):  # which loads it
                self._paces.loaded(model)
            return model

    @override
    def seconds(self, model: str) -> float:
        return self._paces.seconds(model, "judge")

    @override
    async def probability(self, model: str, question: str, passage: Document) -> float:
        prompt = judging.prompt(question, passage)
        with _graders_failures(), self._paces.measured(model, "judge"):
            if model not in self._scoring:
                tokens = await self._host.first_tokens(model, prompt, system=judging.YES_OR_NO)
                if (probability := judging.yes_in(tokens)) is not None:
                    self._failures.pop(model, None)
                    return probability
                if not tokens:
                    self._scoring[model] = True
            reply = await self._host.chat(
                model, prompt, system=judging.SCORE, schema=judging.SCORE_SCHEMA, max_tokens=judging.SCORE_TOKENS
            )
            score = judging.score_in(reply.text) if reply.complete else None
            if score is None:
                self._failures[model] = self._failures.get(model, 0) + 1
                raise ServiceUnavailable("grader", f"{model} did not answer with a score")
            self._failures.pop(model, None)
            return score

    @override
    def try_again(self, model: str, question: str, passage: Document) -> None:
        now = self._clock.monotonic()
        if now - self._tried < _AGAIN_SECONDS or (self._again is not None and not self._again.done()):
            return
        self._tried = now
        self._again = asyncio.create_task(self._try(model, question, passage))

    async def _try(self, model: str, question: str, passage: Document) -> None:
        with suppress(ServiceUnavailable, TimeoutError):
            async with asyncio.timeout(_AGAIN_SECONDS):
                await self.probability(model, question, passage)


@contextmanager
def _graders_failures() -> Iterator[None]:
    try:
        yield
    except ServiceUnavailable as failure:
        raise ServiceUnavailable("grader", failure.message) from failure
