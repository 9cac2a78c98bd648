"""The payload of a stored passage: rag-stack's, with the metadata that the document pipeline lists."""

from pathlib import PurePath
from typing import Any

from cragside.domain.indexing import DocumentRecord, Part, Passage

# What we say, or leave unsaid.
_OURS = frozenset(
    {
        "text",
        "source",
        "title",
        "filename",
        "fileType",
        "docType",
        "bytes",
        "uploadTimestamp",
        "documentId",
        "chunkIndex",
        "totalChunks",
        "enrichmentStatus",
        "tier1",
        "tier2",
        "tier3",
        "pageNumber",
        "section",
        "sections",
    }
)


def payload_of(record: DocumentRecord, passage: Passage) -> dict[str, Any]:
    """The payload of a passage. What the client said of the document is in it, but cannot pass for what we say."""
    part = record.parts[passage.part] if passage.part < len(record.parts) else None
    ours = {
        "text": passage.text,
        "source": record.name,
        "title": record.title,
        "filename": PurePath(record.name).name,
        "fileType": record.file_type,
        "docType": record.doc_type,
        "bytes": record.size,
        "uploadTimestamp": record.created_at,
        "documentId": record.id,
        "chunkIndex": passage.index,
        "totalChunks": record.passages,
        "enrichmentStatus": passage.enrichment,
        "tier1": dict(record.tier1),
    }
    optional = {
        "pageNumber": passage.page,
        "section": passage.section or None,
        "sections": list(passage.sections) or None,
        "tier2": None if passage.tier2 is None else dict(passage.tier2),
        "tier3": _tier3(part),
    }
    theirs = {name: value for name, value in record.metadata.items() if name not in _OURS}
    return {**theirs, **ours, **{name: value for name, value in optional.items() if value is not None}}


def _tier3(part: Part | None) -> dict[str, Any] | None:
    return dict(part.tier3) if part is not None and part.tier3 is not None else None
