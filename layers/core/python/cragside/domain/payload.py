"""The payload of a stored passage, in rag-stack's form, with the metadata that the document pipeline lists."""

from pathlib import PurePath
from typing import Any

from cragside.domain.indexing import DocumentRecord, Passage


def payload_of(record: DocumentRecord, passage: Passage) -> dict[str, Any]:
    """The payload of a passage. It includes the client's metadata, which cannot replace our fields."""
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
        "tier3": None if part is None or part.tier3 is None else dict(part.tier3),
    }
    theirs = {name: value for name, value in record.metadata.items() if name not in ours and name not in optional}
    return {**theirs, **ours, **{name: value for name, value in optional.items() if value is not None}}
