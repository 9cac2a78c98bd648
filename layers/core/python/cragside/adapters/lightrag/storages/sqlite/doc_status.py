"""The document status storage that LightRAG has to have. Documents are in the ledger (ADR 8), so it holds nothing."""

from dataclasses import dataclass
from typing import final

from lightrag.base import DocStatusStorage

from cragside.adapters.lightrag.storages.sqlite.unused import unused


@final
@dataclass
class SqliteDocStatusStorage(DocStatusStorage):
    """LightRAG opens and closes it. Nothing of what is called here reads or writes document status."""

    get_by_id = get_by_ids = filter_keys = is_empty = upsert = delete = drop = unused
    get_status_counts = get_all_status_counts = get_docs_by_statuses = get_docs_by_statuses_page = unused
    get_docs_by_ids = get_full_docs_by_ids = get_docs_by_track_id = get_docs_paginated = unused
    get_doc_by_file_path = get_doc_by_file_basename = get_doc_by_content_hash = resolve_doc_source_strict = unused

    async def index_done_callback(self) -> None:
        """Nothing to do."""
