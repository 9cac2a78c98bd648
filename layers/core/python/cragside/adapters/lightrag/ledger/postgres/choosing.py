"""The statements that list documents: which ones, in which order, and how many."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

from typing import Any, NamedTuple

from cragside.adapters.lightrag.ledger.sql_rows import PARTLY_READ
from cragside.domain.indexing import STATUSES, DocumentSort, DocumentStatus, Listing

# What `DocumentRecord.status` says of the parts of a document.
_CASE = """CASE
    WHEN bool_or(enrichment = 'failed' OR (error <> '' AND NOT embedded)) THEN 'failed'
    WHEN NOT bool_and(embedded) THEN 'pending' WHEN bool_and(enrichment = 'enriched') THEN 'enriched'
    ELSE 'searchable' END"""
STATUS = f"""SELECT document.version, {_CASE} AS status FROM crag.document LEFT JOIN crag.part USING (version)
    WHERE store = $1 AND state = 'current' GROUP BY document.version"""
_OWN_STATUS = f"(SELECT {_CASE} FROM crag.part WHERE part.version = document.version)"
FILE_TYPES = """SELECT file_type, count(*) FROM crag.document WHERE store = $1 AND state = 'current'
    GROUP BY file_type ORDER BY file_type COLLATE "C" """
# A pattern finds the field where the JSON of a name is none to PostgreSQL, such as half a surrogate pair.
LANGUAGES = """SELECT CASE WHEN tier2 IS NOT NULL
    THEN coalesce(substring(tier2 FROM '"language": "([a-z]+)"'), '') END AS language, count(*)
    FROM crag.passage JOIN crag.document ON document.version = passage.version
    WHERE passage.store = $1 AND document.state = 'current' GROUP BY 1"""
_PLACES = " ".join(f"WHEN '{status}' THEN {place}" for place, status in enumerate(STATUSES))
# The database's own collation may know the case of 26 letters only.
_LOWER = 'lower({} COLLATE "und-x-icu")'
_KEYS: dict[DocumentSort, str] = {
    "added": 'created_at COLLATE "C"',
    "changed": "updated_at",
    "name": f'{_LOWER.format("name")} COLLATE "C"',
    "file_type": 'file_type COLLATE "C"',
    "passages": "(SELECT coalesce(max(last) + 1, 0) FROM crag.part WHERE part.version = document.version)",
    "status": f"CASE {_OWN_STATUS} {_PLACES} END",
}
_SOURCE = "(SELECT source FROM crag.origin WHERE store = $1 AND document_id = document.id)"
_SEARCHED = ("name", "title", f"coalesce({_SOURCE}, name)")


class Chosen(NamedTuple):
    """The versions of a list in their order, still without LIMIT and OFFSET, and their number.

    The number of the store is `$1`, and the values follow.
    """

    versions: str
    total: str
    values: list[Any]


def chosen(listing: Listing, status: DocumentStatus | None, track: str | None) -> Chosen:
    """The statements for a list of documents."""
    conditions, values = ["store = $1", "state = 'current'"], list[Any]()
    if listing.search:
        values.append(listing.search)
        mentioned = (f"position({_LOWER.format('$2::text')} IN {_LOWER.format(text)}) > 0" for text in _SEARCHED)
        conditions.append(f"({' OR '.join(mentioned)})")
    if listing.unread:
        conditions.append(f"position('{PARTLY_READ}' IN tier1) > 0")
    for column, value in ((_OWN_STATUS, status), ("track", track), ("file_type", listing.file_type)):
        if value is not None:
            values.append(value)
            conditions.append(f"{column} = ${len(values) + 1}")
    where, way = " AND ".join(conditions), "DESC" if listing.reverse else "ASC"
    order = f"ORDER BY {_KEYS[listing.sort]} {way}, version {way}"
    versions = f"SELECT version FROM crag.document WHERE {where} {order}"
    return Chosen(versions, f"SELECT count(*) FROM crag.document WHERE {where}", values)
