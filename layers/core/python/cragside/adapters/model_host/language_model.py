"""LightRAG's extraction with a chat model."""

import logging
import re
from collections.abc import Mapping, Sequence

from typing_extensions import override

from cragside.adapters.model_host.text_host import Reply, TextHost, failures_of
from cragside.domain.neutral import neutralise
from cragside.ports.models import LanguageModel

# Enough for about sixty rows. It stops small models that loop.
_MOST_TOKENS = 2048
# The number of fields in each kind of LightRAG's rows. Other rows are left out of the graph.
_DELIMITER = "<|#|>"
# LightRAG's own delimiters, which its instructions contain.
_SIGNS = re.compile(r"(<\|#\|>|<\|COMPLETE\|>)")
_FIELDS = {"entity": 4, "relation": 5}
_HEAD = 200  # characters of a prompt that identify it
_EXTRACTION = "Extract entities and relationships"

logger = logging.getLogger(__name__)


class HostedLanguageModel(LanguageModel):
    """Answers with a chat model, or with `embedded` when the host has none.

    A silent host is an error, so a document waits for its model instead of being extracted by a lesser one. The log
    says how many rows of an extraction are malformed.
    """

    def __init__(self, host: TextHost, embedded: LanguageModel) -> None:
        self._host = host
        self._embedded = embedded

    @override
    async def complete(
        self, prompt: str, *, system: str | None = None, history: Sequence[Mapping[str, str]] = ()
    ) -> str:
        with failures_of("extractor"):
            model = await self._host.choose(None)
            if model is not None:
                turns = [{**message, "content": _harmless(message["content"])} for message in history]
                reply = await self._host.chat(
                    model, _harmless(prompt), system=system, history=turns, max_tokens=_MOST_TOKENS
                )
                if _EXTRACTION in prompt[:_HEAD]:
                    _report(model, reply)
                return reply.text
        return await self._embedded.complete(prompt, system=system, history=history)


def _harmless(prompt: str) -> str:
    """Return a prompt of LightRAG without control tokens of chat templates in its passage."""
    pieces = _SIGNS.split(prompt)
    return "".join(piece if number % 2 else neutralise(piece) for number, piece in enumerate(pieces))


def rows_in(answer: str) -> tuple[int, int]:
    """Return the numbers of well-formed rows and of other lines in an extraction."""
    lines = [line.strip() for line in answer.splitlines()]
    lines = [line for line in lines if line and not line.startswith("<|COMPLETE|>")]
    good = sum(_is_row(line.split(_DELIMITER)) for line in lines)
    return good, len(lines) - good


def _is_row(fields: list[str]) -> bool:
    return _FIELDS.get(fields[0].strip("( \"'").lower()) == len(fields) and all(map(str.strip, fields))


def _report(model: str, reply: Reply) -> None:
    good, malformed = rows_in(reply.text)
    if malformed or not good or not reply.complete:
        cut = "" if reply.complete else "; the answer was cut off"
        logger.warning("%s extracted %d rows; %d lines are malformed and left out%s", model, good, malformed, cut)
