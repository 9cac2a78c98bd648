"""Return the condition on passages that a filter could let through, as far as SQL can tell."""

import json

import numpy as np
import numpy.typing as npt

from cragside.domain.query import Condition, Filter
from cragside.store.ledger.sqlite.database import Database

_CANDIDATES = """
SELECT vector.seq FROM document JOIN chunk USING (version)
JOIN part ON part.version = chunk.version AND part.number = chunk.part
JOIN vector ON vector.namespace = 'chunks' AND vector.id = chunk.id
WHERE document.state <> 'gone' AND {}
"""
_METADATA = "document.metadata"
# Where the strings of a payload's fields are kept; those of other fields are in the metadata.
_COLUMNS = {
    "source": "document.name",
    "filename": "document.name",
    "title": "document.title",
    "fileType": "document.file_type",
    "docType": "document.doc_type",
    "documentId": "document.id",
    "uploadTimestamp": "document.created_at",
    "tier1": "document.tier1",
    "tier2": "chunk.tier2",
    "tier3": "part.tier3",
    "section": "chunk.section",
    "sections": "chunk.section",
    "enrichmentStatus": "part.enrichment",
}
_JSON = {_METADATA, "document.tier1", "chunk.tier2", "part.tier3"}
# No column holds their strings, or they have none.
_ELSEWHERE = {"text", "bytes", "chunkIndex", "totalChunks", "pageNumber"}


def candidates(database: Database, wanted: Filter) -> npt.NDArray[np.int64] | None:
    """The numbers of the vectors whose passages may meet the conditions, and of a few that do not.

    None when SQL cannot tell.
    """
    clauses: list[str] = []
    values: list[str] = []
    for clause, value in filter(None, map(_clause, wanted.must)):
        clauses.append(clause)
        values.append(value)
    if not clauses:
        return None
    rows = database.all(_CANDIDATES.format(" AND ".join(clauses)), values)
    return np.fromiter((row[0] for row in rows), np.int64, len(rows))


def _clause(condition: Condition) -> tuple[str, str] | None:
    """SQL for a condition on a string: true wherever the string is, in the field or, within JSON, in another one."""
    root = condition.key.split(".")[0]
    if not isinstance(condition.value, str) or root in _ELSEWHERE:
        return None
    in_any_case = condition.how == "contains"
    if in_any_case and not condition.value.isascii():
        return None  # `lower()` of SQLite knows the 26 letters alone
    column = _COLUMNS.get(root, _METADATA)
    value = condition.value.lower() if in_any_case else condition.value
    wanted = json.dumps(value)[1:-1] if column in _JSON else value
    return (f"instr(lower({column}), ?)" if in_any_case else f"instr({column}, ?)"), wanted
