"""What can be said of a text beside the graph: tiers 2 and 3 of rag-stack's enrichment."""

from typing import Any, Protocol

from cragside.domain.document import DocType

# As rag-stack has it: what a document is about is said of its first 8000 characters.
DESCRIBED_CHARACTERS = 8000


class Annotator(Protocol):
    """Describes passages and documents."""

    def tier2(self, text: str) -> dict[str, Any]:
        """`{"entities": [{"text", "label"}], "keywords": [at most 10], "language": ISO 639-1 or None}`; no model."""

    async def tier3(self, doc_type: DocType, text: str) -> dict[str, Any]:
        """The fields of tier 3 for the type, such as `{"summary", "key_entities"}` for a text.

        Raises `ServiceUnavailable("annotator", ...)` when the model does not answer; nonsense from it is replaced by
        what can be said without it, and `"degraded"` then says so.
        """
