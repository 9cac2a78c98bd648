"""Failures of a model host as cragside's errors, and texts that are too long for its models."""

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from cragside.domain.errors import InputRefused, ServiceUnavailable

# What hosts answer to a text that is longer than the model reads. llama.cpp and older versions of Ollama answer 500.
_TOO_LONG = frozenset({400, 413, 422, 500})
_OUT_OF_ORDER = 500
# JSON has no word for such a number, so that Ollama answers 500 to a text whose vector has one.
_NO_NUMBER = re.compile(r"unsupported value: [+-]?(?:NaN|Inf)")
SHORTEST_CUT = 200


class HostSilent(ServiceUnavailable):
    """The host does not answer."""


class Refused(ServiceUnavailable):
    """The host refused a request; `status` is what it answered."""

    def __init__(self, component: str, status: int, message: str) -> None:
        super().__init__(component, message)
        self.status = status

    @property
    def may_be_length(self) -> bool:
        """Tell if a text may be too long. Which one, and how long it may be, no answer says in a way that all share."""
        return self.status in _TOO_LONG

    @property
    def may_be_form(self) -> bool:
        """Tell if the host may not know what was asked for."""
        return self.status in (400, 422)


@contextmanager
def failures_of(component: str, *, refusals: bool = False) -> Iterator[None]:
    """Raise a host's failures as those of the component that asked it, and `refusals` of an input as such."""
    try:
        yield
    except ServiceUnavailable as failure:
        kind = InputRefused if refusals and isinstance(failure, InputRefused) else ServiceUnavailable
        raise kind(component, failure.message) from failure


async def embed_shortened(
    embed: Callable[[list[str]], Awaitable[list[list[float]]]], texts: Sequence[str]
) -> list[list[float]]:
    """The vectors of texts, cut by halves until the host takes them. Which one was too long the host does not say.

    Raises what `embed` raises, and `InputRefused` for texts that the host takes at no length.
    """
    sent = list(texts)
    while True:
        try:
            return await embed(sent)
        except Refused as refusal:
            longest = max(map(len, sent), default=0)
            if not refusal.may_be_length:
                raise
            if longest <= SHORTEST_CUT:
                if refusal.status >= _OUT_OF_ORDER and not _NO_NUMBER.search(refusal.message):
                    raise
                raise InputRefused(refusal.component, refusal.message) from refusal
        sent = [text[: max(longest // 2, SHORTEST_CUT)] for text in sent]


def reason_in(body: object) -> str:
    """The reason in what a host answers to a request that it refuses: JSON, its text, or any other text.

    OpenAI's client hands out the object `error` itself; hosts also answer a text, or `message` or `detail` alone.
    """
    if isinstance(body, str):
        with suppress(ValueError, RecursionError):
            read = json.loads(body)
            body = read if isinstance(read, dict) else body
    if isinstance(body, dict):
        inner = body.get("error", body)
        named = (inner[name] for name in ("message", "detail") if isinstance(inner, dict) and name in inner)
        body = inner if isinstance(inner, str) else next(named, "")
    return " ".join(body.split()) if isinstance(body, str) else ""
