"""Reads documents that other programs keep in JSON: AnythingLLM's documents and vector cache, LangChain's documents."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cragside.adapters.documents.reading import Composer, Reading, label

_CONTENTS = ("pageContent", "page_content")
_UNKNOWN = frozenset({"", "unknown", "no description found.", "no author found."})
# AnythingLLM writes this before each chunk.
_PREFIX = re.compile(r"\A\s*+<document_metadata>.{0,5000}?</document_metadata>\s*+", re.DOTALL)


def document_export(value: Any) -> Reading | None:
    """The text of the documents; None if the value holds none. With several, each is a section with its title."""
    items = value if isinstance(value, list) else [value]
    if items and all(_content(item) is not None for item in items):
        return _documents(items)
    chunks = list(_chunks(value))
    return _cached(chunks) if chunks else None


def _documents(items: list[Mapping[str, Any]]) -> Reading:
    composer = Composer()
    for item in items:
        if len(items) > 1:
            composer.mark(section=label(_named(item, "title", "source"), 120), apart=True)
        composer.add((_content(item) or "").strip())
    if len(items) > 1:
        return Reading(composer.text, marks=composer.marks)
    item = items[0]
    said = {
        "author": _named(item, "docAuthor", "author"),
        "published": _named(item, "published"),
        "source": _named(item, "chunkSource", "docSource", "url", "source"),
    }
    return Reading(
        composer.text, title=_named(item, "title"), properties={name: is_ for name, is_ in said.items() if is_}
    )


def _content(item: Any) -> str | None:
    if not isinstance(item, Mapping):
        return None
    return next((item[name] for name in _CONTENTS if isinstance(item.get(name), str)), None)


def _named(item: Mapping[str, Any], *names: str) -> str:
    metadata = item.get("metadata")
    for facts in (item, metadata if isinstance(metadata, Mapping) else {}):
        for name in names:
            value = facts.get(name)
            if isinstance(value, str) and value.strip().lower() not in _UNKNOWN:
                return label(value)
    return ""


def _chunks(value: Any) -> Iterator[Mapping[str, Any]]:
    """The chunks of a vector cache, which is a list of lists of chunks with vectors; none if it is anything else."""
    groups = value if isinstance(value, list) else []
    flat = [chunk for group in groups for chunk in (group if isinstance(group, list) else [group])]
    if all(
        isinstance(chunk, Mapping)
        and isinstance(chunk.get("values"), list)
        and isinstance(chunk.get("metadata"), Mapping)
        and isinstance(chunk["metadata"].get("text"), str)
        for chunk in flat
    ):
        yield from flat


def _cached(chunks: list[Mapping[str, Any]]) -> Reading:
    composer = Composer()
    for chunk in chunks:
        composer.add(_PREFIX.sub("", chunk["metadata"]["text"]).strip())
    return Reading(composer.text, title=_named(chunks[0], "title"))
