"""Defines the refusal of a model host, and cuts texts that are too long for its embedding model."""

import re
from collections.abc import Awaitable, Callable, Sequence

from cragside.domain.errors import InputRefused, ServiceUnavailable

# What hosts answer to a text that is longer than the model reads. llama.cpp and older versions of Ollama answer 500.
_TOO_LONG = frozenset({400, 413, 422, 500})
_OUT_OF_ORDER = 500
# JSON has no word for such a number, so that Ollama answers 500 to a text whose vector has one.
_NO_NUMBER = re.compile(r"unsupported value: [+-]?(?:NaN|Inf)")
_SHORTEST_CUT = 200


class Refused(ServiceUnavailable):
    """The host refused a request; `status` is what it answered."""

    def __init__(self, component: str, status: int, message: str) -> None:
        super().__init__(component, message)
        self.status = status


async def embedded(
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
            if refusal.status not in _TOO_LONG:
                raise
            if longest <= _SHORTEST_CUT:
                if refusal.status >= _OUT_OF_ORDER and not _NO_NUMBER.search(refusal.message):
                    raise
                raise InputRefused(refusal.component, refusal.message) from refusal
        sent = [text[: max(longest // 2, _SHORTEST_CUT)] for text in sent]
