"""Reads Markdown files."""

from cragside.adapters.documents.describing import describe
from cragside.adapters.documents.front_matter import noted
from cragside.adapters.documents.headings import sections, title_of
from cragside.adapters.documents.markdown_code import without_tags
from cragside.adapters.documents.markdown_unseen import seen
from cragside.adapters.documents.reading import FileOrigin, Reading
from cragside.adapters.documents.texts import decoded
from cragside.adapters.documents.wiki_links import resolved


def read_markdown(content: bytes, origin: FileOrigin) -> Reading:
    """The text of a Markdown file, without its front matter, with what a reader sees of wiki links."""
    text = decoded(content, origin)
    doc_type, tier1 = describe(origin.name, text)
    note = noted(text)
    body, links = resolved(without_tags(seen(note.text)))
    properties = {**note.properties, **({"links": links} if links else {})}
    return Reading(body, doc_type, note.title or title_of(origin.name, body), sections(body), tier1, properties)
