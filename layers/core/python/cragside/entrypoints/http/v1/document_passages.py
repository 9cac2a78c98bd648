"""Where a passage stands in its document, for those who open the document at it."""

import asyncio

from cragside.domain.document import SourceText
from cragside.domain.errors import NotFound
from cragside.domain.indexing import place_of
from cragside.entrypoints.http.v1.document_models import PassagePlace
from cragside.ports.workspaces import Library


async def place_in_document(library: Library, document_id: str, source: SourceText, passage_id: str) -> PassagePlace:
    """The place of a passage. Raises `NotFound` for a passage that the document does not have."""
    passages = await library.passages(document_id)
    passage = next((each for each in passages if each.id == passage_id), None)
    if passage is None:
        raise NotFound(f"Document {document_id} has no passage {passage_id}.")
    # In a thread: a text of 50 MB takes a while to search.
    found = await asyncio.to_thread(place_of, passage, passages, source)
    start, end = found or (None, None)
    return PassagePlace(id=passage.id, start=start, end=end, page=passage.page, section=passage.section or None)
