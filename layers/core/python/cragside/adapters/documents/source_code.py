"""Reads source code, with functions and classes as sections."""

from cragside.adapters.documents.languages import language_of, outline
from cragside.adapters.documents.reading import FileOrigin, Reading
from cragside.adapters.documents.texts import decoded


def read_code(content: bytes, origin: FileOrigin) -> Reading:
    """The source, unchanged."""
    text = decoded(content, origin)
    marks, tier1 = outline(text, language_of(origin.name) or origin.file_type)
    return Reading(text, "code", marks=marks, tier1=tier1)
