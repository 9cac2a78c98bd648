"""Reads the files that a Word document embeds in its text: pages, rich text, web archives, other documents."""

import posixpath
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

from cragside.adapters.documents.choosing import kind_of
from cragside.adapters.documents.emails import parsed_message
from cragside.adapters.documents.kinds import EMAIL, HTML, RTF, TEXT, WORD
from cragside.adapters.documents.mail_parts import contents_of
from cragside.adapters.documents.packages import RELATED, Relation, content_type
from cragside.adapters.documents.reading import Composer, FileOrigin, Reading, Unreadable, contained

_NOTHING = Reading("")


class Chunks:
    """Reads the embedded files of a document, each once. `document` reads Word documents among them."""

    def __init__(
        self, archive: zipfile.ZipFile, related: Mapping[str, Relation], document: Callable[[bytes], Reading]
    ) -> None:
        self._archive = archive
        self._related = related
        self._document = document
        self._read: set[str] = set()

    def read(self, chunk: Any) -> Reading:
        """The file that stands in this place. It is empty if it cannot be read, as in Word, or was read before."""
        relation = self._related.get(chunk.get(f"{RELATED}id", ""))
        if relation is None or relation.external or relation.kind != "aFChunk" or relation.target in self._read:
            return _NOTHING
        self._read.add(relation.target)
        try:
            with contained():
                content = self._archive.read(relation.target)
                return self._reading(content, relation.target, content_type(self._archive, relation.target))
        except Unreadable:
            return _NOTHING

    def _reading(self, content: bytes, name: str, stated: str) -> Reading:
        if name.lower().endswith((".mht", ".mhtml")):
            return _mail(content)
        kind, file_type = kind_of(content, posixpath.basename(name), stated)
        if kind is WORD:
            return self._document(content)
        if kind is EMAIL:
            return _mail(content)
        if kind is HTML:
            return _page(content)
        # Word also embeds whole documents as XML.
        plain = kind is RTF or (kind is TEXT and file_type != "xml")
        return kind.reader(content, FileOrigin(name, file_type)) if plain else _NOTHING


def _mail(content: bytes) -> Reading:
    """Read the text of a mail without its headers. Web archives are written as mails."""
    composer = Composer()
    for part in contents_of(parsed_message(content)).texts:
        composer.extend(part.marks, composer.length)
        composer.add(part.text)
    return Reading(composer.text.strip(), marks=composer.marks)


def _page(content: bytes) -> Reading:
    from cragside.adapters.documents import html

    page = html.whole(html.tree_of(content, None))
    return Reading(page.text.strip(), marks=page.marks)
