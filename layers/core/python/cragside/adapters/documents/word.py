"""Reads DOCX: paragraphs and tables in order, with headings as sections. Runs in a child process.

The text is that of the printed document: with insertions, notes, and the numbers of headings and lists, without
deletions and hidden text.
"""

import zipfile
from collections.abc import Mapping
from functools import partial
from typing import Any

from cragside.adapters.documents.archives import check_archive, opened, parsed
from cragside.adapters.documents.charts import charts
from cragside.adapters.documents.packages import Relation, part, parts, properties, relations, transitional
from cragside.adapters.documents.reading import Composer, FileOrigin, Headings, Reading, Unreadable
from cragside.adapters.documents.word_chunks import Chunks
from cragside.adapters.documents.word_numbering import Numbering, Styles, W, outline_level, value_of
from cragside.adapters.documents.word_text import Texts, blocks

_WHAT = "a Word document (.docx)"


def read(content: bytes, origin: FileOrigin) -> Reading:
    """Text, title, author and date. Raises `Unreadable` for damaged files, and for those too large when unpacked."""
    return _read(content, embedded=False)


def _read(content: bytes, *, embedded: bool) -> Reading:
    """A document. One that is `embedded` in another embeds no further files."""
    check_archive(content, {"[Content_Types].xml"}, _WHAT)
    content = transitional(content, _WHAT)
    with opened(content, _WHAT) as archive:
        main = next(parts(archive, relations(archive, ""), "officeDocument"), "word/document.xml")
        related, root = relations(archive, main), parsed(archive.read(main))
        body = root.find(f"{W}body")
        if body is None:
            raise Unreadable("is damaged, or not a Word document")
        styles, settings = Styles(part(archive, related, "styles")), part(archive, related, "settings")
        sections = sum(1 for _ in body.iter(f"{W}sectPr"))
        notes = _notes(archive, related)
        for each in (body, *(note for note, _ in notes.values())):
            styles.hide_text(each)
        chunks = Chunks(archive, {} if embedded else related, partial(_read, embedded=True))
        texts = Texts(
            Numbering(part(archive, related, "numbering"), styles),
            related,
            notes,
            counted=not any(_restarts(each, sections) for each in (body, settings) if each is not None),
            chunk=chunks.read,
            chart=charts(archive, related),
        )
        composer = Composer()
        title = _compose(body, styles, texts, chunks, composer)
        fields = properties(archive)
    return composer.reading(fields, " ".join(title.split()))


def _compose(body: Any, styles: Styles, texts: Texts, chunks: Chunks, composer: Composer) -> str:
    """Write the body. Return the title, or else the first heading."""
    headings, title = Headings(), ""
    for block in blocks(body):
        if block.tag == f"{W}tbl":
            if table := "\n".join(texts.rows(block)):
                composer.add(table)
        elif block.tag == f"{W}altChunk":
            chunk = chunks.read(block)
            title = title or chunk.title
            composer.extend(chunk.marks, composer.length)
            composer.add(chunk.text)
            if chunk.marks:
                composer.mark(section=headings.path)
        elif (paragraph := texts.paragraph(block)).whole:
            style = styles.of(value_of(block, "pPr", "pStyle"))
            level = outline_level(block) or style.level
            if paragraph.text and style.is_title:
                title = title or paragraph.text
            elif paragraph.text and level is not None:
                composer.mark(section=headings.enter(level, paragraph.numbered))
                title = title or paragraph.text
            composer.add(paragraph.whole)
    return title


def _notes(
    archive: zipfile.ZipFile, related: Mapping[str, Relation]
) -> dict[tuple[str, str], tuple[Any, Mapping[str, Relation]]]:
    """Footnotes and endnotes by their kind and id, with the links of their part."""
    found = dict[tuple[str, str], tuple[Any, Mapping[str, Relation]]]()
    for kind in ("Footnote", "Endnote"):
        for path in parts(archive, related, f"{kind.lower()}s"):
            links = relations(archive, path)
            for note in parsed(archive.read(path)).iterchildren(f"{W}{kind.lower()}"):
                found[kind, note.get(f"{W}id", "")] = note, links
    return found


def _restarts(root: Any, sections: int) -> bool:
    """Tell if the numbers of notes begin again on a page, or in one of several sections."""
    restarts = {each.get(f"{W}val", "") for each in root.iter(f"{W}numRestart")}
    return "eachPage" in restarts or ("eachSect" in restarts and sections > 1)
