"""Texts to index."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Literal

from cragside.domain.errors import ValidationError

DocType = Literal["code", "slack", "email", "meeting", "pdf", "image", "article", "text"]

# Separates the headings in the path to a section.
_BELOW = " > "


@dataclass(frozen=True, slots=True)
class Mark:
    """The page (from 1) and section of the text from the character `start` to the next mark.

    If `apart`, no passage crosses the start, as with a row of a table.
    """

    start: int
    page: int | None = None
    section: str = ""
    apart: bool = False


def cited_section(sections: Sequence[str]) -> str:
    """Return the citation of a passage that covers these sections, given in their order as paths: "A > B".

    It names the first and the last section, and their common path once: "A > B – C" for "A > B" and "A > C". It is ""
    for a passage that begins outside of any section.
    """
    if not sections or not sections[0]:
        return ""
    first, *others = dict.fromkeys(filter(None, sections))
    if not others:
        return first
    path = others[-1].split(_BELOW)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first.split(_BELOW), path, strict=False)))
    return f"{first} – {_BELOW.join(path[shared:] or path)}"


@dataclass(frozen=True, slots=True)
class SourceText:
    """A whole text to index. `name` is shown to people; `source` identifies the document in its workspace.

    A source is a file's absolute path, a page's URL, or an id that the client chose; the default is the name. Two
    sources with one name are two documents.

    `marks` are in the order of their starts. `tier1` holds the loader's annotations, whose fields depend on `doc_type`.
    `properties` are the file's own: its front matter and links. `metadata` comes from the client, or from the
    properties where the client says nothing; searches can filter by it. `unread` says what of the file is missing from
    the text, and why. If it `may_give_more`, another reading of the same bytes may find it.
    """

    name: str
    text: str
    title: str = ""
    file_type: str = "txt"
    doc_type: DocType = "text"
    size: int | None = None
    marks: tuple[Mark, ...] = ()
    tier1: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)
    unread: str = ""
    may_give_more: bool = False

    def __post_init__(self) -> None:
        if not self.source.strip():
            object.__setattr__(self, "source", self.name)
        if not self.name.strip():
            raise ValidationError("A text to index needs a name.")
        if not self.text.strip():
            raise ValidationError(f"{self.name} is empty. There is nothing to index.")
