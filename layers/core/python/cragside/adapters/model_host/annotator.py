"""Annotates documents (tier 3) with a chat model."""

from typing import Any

from typing_extensions import override

from cragside.adapters.model_host import annotation
from cragside.adapters.model_host.text_host import TextHost
from cragside.application.attempts import DESCRIBED_CHARACTERS, Annotator
from cragside.domain.document import DocType
from cragside.domain.errors import ServiceUnavailable

# Enough for the longest form. It stops small models that loop.
_MOST_TOKENS = 768
_TRIES = 2


class HostedAnnotator(Annotator):
    """Tier 3 by a chat model; `by` names it. `embedded` does tier 2, and tier 3 when the host has no model.

    A silent host is an error, so a document waits for its model instead of being described by rules. A model that
    answers nonsense twice will do so again: then `embedded` describes the document, and `degraded` says so.
    """

    def __init__(self, host: TextHost, embedded: Annotator) -> None:
        self._host = host
        self._embedded = embedded

    @override
    def tier2(self, text: str) -> dict[str, Any]:
        return self._embedded.tier2(text)

    @override
    async def tier3(self, doc_type: DocType, text: str) -> dict[str, Any]:
        if not annotation.asks_model(doc_type) or not text.strip():
            return await self._embedded.tier3(doc_type, text)
        try:
            model = await self._host.choose(None)
            if model is None:
                return await self._embedded.tier3(doc_type, text)
            fields, fault = await self._described(model, doc_type, text[:DESCRIBED_CHARACTERS])
        except ServiceUnavailable as failure:
            raise ServiceUnavailable("annotator", failure.message) from failure
        if fields is not None:
            return {**fields, "by": model}
        rules = await self._embedded.tier3(doc_type, text)
        return {**rules, "degraded": f"{model} {fault}. These fields were found by rules."}

    async def _described(self, model: str, doc_type: DocType, text: str) -> tuple[dict[str, Any] | None, str]:
        """The model's fields, or None and the fault of its last answer."""
        prompt, fault = annotation.question(doc_type, text), ""
        for attempt in range(_TRIES):
            # At temperature 0 an equal prompt gets an equal answer, so the second prompt names the fault.
            asked = prompt if attempt == 0 else f"{prompt}\n\nYour last answer {fault}. Keep it short: JSON alone."
            reply = await self._host.chat(
                model,
                asked,
                system=annotation.SYSTEM,
                schema=annotation.answer_schema(doc_type),
                max_tokens=_MOST_TOKENS,
            )
            fields = annotation.fields_in(doc_type, reply.text) if reply.complete else None
            if fields is not None:
                return fields, ""
            fault = "did not fill the form" if reply.complete else "did not come to an end"
        return None, fault
