"""The statements that list documents: which ones, in which order, and how many."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

from typing import Any, NamedTuple

from cragside.adapters.lightrag.ledger.sql_rows import PARTLY_READ
from cragside.domain.indexing import STATUSES, DocumentSort, DocumentStatus, Listing

# What `DocumentRecord.status` says of the parts of a document.
_CASE = """CASE
    WHEN max(enrichment = 'failed' OR (error <> '' AND NOT embedded)) THEN 'failed'
    WHEN NOT min(embedded) THEN 'pending' WHEN min(enrichment = 'enriched') THEN 'enriched'
    ELSE 'searchable' END"""
STATUS = f"""SELECT document.version, {_CASE} AS status FROM document LEFT JOIN part USING (version)
    GROUP BY document.version"""
_OWN_STATUS = f"(SELECT {_CASE} FROM part WHERE part.version = document.version)"
FILE_TYPES = "SELECT file_type, count(*) FROM document WHERE state = 'current' GROUP BY file_type ORDER BY file_type"
LANGUAGES = """SELECT CASE WHEN tier2 IS NOT NULL THEN coalesce(json_extract(tier2, '$.language'), '') END, count(*)
    FROM chunk JOIN document USING (version) WHERE state = 'current' GROUP BY 1"""
_PLACES = " ".join(f"WHEN '{status}' THEN {place}" for place, status in enumerate(STATUSES))
# `folded` is Python's, because SQLite knows the case of 26 letters only.
_KEYS: dict[DocumentSort, str] = {
    "added": "created_at",
    "changed": "updated_at",
    "name": "folded(name)",
    "file_type": "file_type",
    "passages": "(SELECT coalesce(max(last) + 1, 0) FROM part WHERE part.version = document.version)",
    "status": f"CASE {_OWN_STATUS} {_PLACES} END",
}
# One call of Python for each document. No text that can be stored has the character between the three.
_MENTIONED = "instr(folded(name || char(31) || title || char(31) || coalesce(source, name)), ?)"


class Chosen(NamedTuple):
    """The versions of a list in their order, still without LIMIT and OFFSET, and their number."""

    versions: str
    total: str
    values: list[Any]


def chosen(listing: Listing, status: DocumentStatus | None, track: str | None) -> Chosen:
    """The statements for a list of documents."""
    tables, conditions, values = "document", ["state = 'current'"], list[Any]()
    if listing.search:
        tables += " LEFT JOIN origin ON origin.document_id = document.id"
        conditions.append(_MENTIONED)
        values.append(listing.search.casefold())
    if listing.unread:
        conditions.append(f"instr(tier1, '{PARTLY_READ}')")
    for condition, value in ((_OWN_STATUS, status), ("track", track), ("file_type", listing.file_type)):
        if value is not None:
            conditions.append(f"{condition} = ?")
            values.append(value)
    where, way = " AND ".join(conditions), "DESC" if listing.reverse else "ASC"
    order = f"ORDER BY {_KEYS[listing.sort]} {way}, version {way}"
    versions = f"SELECT version FROM {tables} WHERE {where} {order}"
    return Chosen(versions, f"SELECT count(*) FROM {tables} WHERE {where}", values)
