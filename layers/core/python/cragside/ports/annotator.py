"""Annotations of passages and documents: tiers 2 and 3 of rag-stack's enrichment."""

from typing import Any, Protocol

from cragside.domain.document import DocType

# As in rag-stack, tier 3 describes the first 8000 characters of a document.
DESCRIBED_CHARACTERS = 8000


class Annotator(Protocol):
    """Describes passages and documents."""

    def tier2(self, text: str) -> dict[str, Any]:
        """`{"entities": [{"text", "label"}], "keywords": [at most 10], "language": ISO 639-1 or None}`; no model."""

    async def tier3(self, doc_type: DocType, text: str) -> dict[str, Any]:
        """The fields of tier 3 for the type, such as `{"summary", "key_entities"}` for a text.

        `by` names what found them. Raises `ServiceUnavailable("annotator", ...)` if the model does not answer. If its
        answer is invalid, rules find the fields instead, and `degraded` says so.
        """
