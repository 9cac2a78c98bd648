"""Reads Markdown files."""

from cragside.adapters.documents.describing import describe
from cragside.adapters.documents.headings import sections, title_of
from cragside.adapters.documents.reading import FileOrigin, Reading
from cragside.adapters.documents.texts import decoded


def read(content: bytes, origin: FileOrigin) -> Reading:
    """The text of a Markdown file, unchanged."""
    text = decoded(content, origin)
    doc_type, tier1 = describe(origin.name, text)
    return Reading(text, doc_type, title_of(origin.name, text), sections(text), tier1)
