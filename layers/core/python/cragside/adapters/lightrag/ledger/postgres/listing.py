"""The documents in the table that LightRAG's server lists them from, kept as the ledger has them.

Their texts are not repeated in LightRAG's table of whole documents: its server reads that only to index a text itself.
"""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

from cragside.adapters.lightrag.ledger.postgres.store import PostgresStore

_KEY = "(SELECT key FROM crag.store WHERE id = $1)"
_STATUS = """CASE
    WHEN bool_or(enrichment = 'failed' OR (error <> '' AND NOT embedded)) THEN 'failed'
    WHEN NOT bool_and(embedded) THEN 'pending'
    WHEN bool_or(enrichment IN ('pending', 'processing')) THEN 'processing'
    ELSE 'processed' END"""
_ERROR = "nullif(string_agg(DISTINCT nullif(error, ''), ' '), '')"
_TOLD = f"""SELECT document.id, {_STATUS} AS status, {_ERROR} AS error
    FROM crag.document LEFT JOIN crag.part USING (version)
    WHERE store = $1 AND state = 'current' AND {{}} GROUP BY document.version"""
# The list of passages is long, so that it is written only together with the passages.
_SHOW = f"""UPDATE lightrag_doc_status AS listed
    SET status = told.status, error_msg = told.error, updated_at = clock_timestamp() AT TIME ZONE 'UTC'
    FROM ({_TOLD}) AS told WHERE listed.workspace = {_KEY} AND listed.id = told.id
    AND (listed.status, listed.error_msg) IS DISTINCT FROM (told.status, told.error)"""
_SHOW_VERSION = _SHOW.format("version = $2")
_SHOW_DOCUMENT = _SHOW.format("document.id = $2")
_SHOW_ALL = _SHOW.format("true")
# LightRAG shows the first 250 characters of a text, and times of UTC without saying so.
_LISTED = f"""INSERT INTO lightrag_doc_status (workspace, id, content_summary, content_length, chunks_count, status,
    file_path, chunks_list, track_id, metadata, error_msg, content_hash, created_at, updated_at)
    SELECT {_KEY}, id, left(start, 250) || CASE WHEN characters > 250 THEN '...' ELSE '' END, characters,
    jsonb_array_length(passages), status, name, passages, nullif(left(track, 255), ''), '{{{{}}}}', error, content_hash,
    created_at::timestamptz AT TIME ZONE 'UTC', updated_at::timestamptz AT TIME ZONE 'UTC'
    FROM crag.document JOIN ({_TOLD}) AS told USING (id)
    CROSS JOIN LATERAL (SELECT btrim(left(text, 1000), E' \\t\\n\\r') AS start) AS begun
    CROSS JOIN LATERAL (SELECT coalesce(jsonb_agg(passage.id ORDER BY number), '[]') AS passages
        FROM crag.passage WHERE passage.version = document.version) AS cut
    WHERE store = $1 AND state = 'current'
    ON CONFLICT (workspace, id) DO UPDATE SET content_summary = excluded.content_summary,
    content_length = excluded.content_length, chunks_count = excluded.chunks_count, status = excluded.status,
    file_path = excluded.file_path, chunks_list = excluded.chunks_list, track_id = excluded.track_id,
    error_msg = excluded.error_msg, content_hash = excluded.content_hash, updated_at = excluded.updated_at"""
_LIST = _LISTED.format("document.id = $2")
LIST_ALL = _LISTED.format("true")
_UNLIST = f"DELETE FROM lightrag_doc_status WHERE workspace = {_KEY} AND id = $2"


class Listing:
    """What LightRAG's server is to show after a transaction.

    It is written while the transaction holds the store's row: two that end at one time then see each other's parts.
    """

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._statements: dict[str, tuple[str | int, ...]] = {}

    def entered(self, document_id: str) -> None:
        """A document has another text, name or description."""
        self._statements[_LIST] = (document_id,)

    def removed(self, document_id: str) -> None:
        """A document is gone."""
        self._statements[_UNLIST] = (document_id,)

    def stepped(self, version: int) -> None:
        """A part of a version has another state."""
        self._statements[_SHOW_VERSION] = (version,)

    def requeued(self, document_id: str | None) -> None:
        """Parts of a document, or of all, are to be indexed again."""
        self._statements |= {_SHOW_ALL: ()} if document_id is None else {_SHOW_DOCUMENT: (document_id,)}

    async def write(self) -> None:
        """Write it."""
        for statement, values in self._statements.items():
            await self._store.execute(statement, *values)
