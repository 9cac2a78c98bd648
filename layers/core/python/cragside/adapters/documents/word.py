"""Reads DOCX: paragraphs and tables in order, with headings as sections. Runs in a child process."""

import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from cragside.adapters.documents.emails import contents_of, parsed_message
from cragside.adapters.documents.inline_text import LEVEL, LOWERED, RAISED, end_link, field_target, leveled
from cragside.adapters.documents.kinds import EMAIL, HTML, RTF, TEXT, WORD, kind_of
from cragside.adapters.documents.office_objects import CHARTS, M, charts, linear
from cragside.adapters.documents.packages import (
    RELATED,
    Relation,
    check_archive,
    content_type,
    opened,
    parsed,
    part,
    parts,
    properties,
    relations,
    transitional,
)
from cragside.adapters.documents.reading import Composer, FileOrigin, Headings, Reading, Unreadable, contained
from cragside.adapters.documents.tables import Merged, MergedRow, barred
from cragside.adapters.documents.word_styles import Numbering, Styles, W, is_on, outline_level, value_of

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
        """Return the file that stands in this place.

        It is empty if it cannot be read, as in Word, or was read before.
        """
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
    for each in contents_of(parsed_message(content)).texts:
        composer.extend(each.marks, composer.length)
        composer.add(each.text)
    return Reading(composer.text.strip(), marks=composer.marks)


def _page(content: bytes) -> Reading:
    from cragside.adapters.documents import html

    page = html.whole(html.tree_of(content, None))
    return Reading(page.text.strip(), marks=page.marks)


# Word has at most 63 columns.
_COLUMNS = re.compile(r"[1-9]|[1-5]\d|6[0-3]")

# The element of a row, and its cells with their texts.
Row = tuple[Any, Sequence[tuple[Any, str]]]


def merged_rows(rows: Sequence[Row]) -> Iterator[MergedRow]:
    """Yield each row with its number and the merged cells that begin in it."""
    # A merged cell over several rows by its first column: where it stands in the list of its row.
    begun, result = dict[int, tuple[list[Merged], int]](), list[MergedRow]()
    for number, (row, cells) in enumerate(rows, 1):
        texts, merged = [""] * _stated(row, "trPr", "gridBefore", 0), list[Merged]()
        goes_on = dict[int, tuple[list[Merged], int]]()
        for cell, text in cells:
            column, width = len(texts) + 1, _stated(cell, "tcPr", "gridSpan", 1)
            kind = _vertical(cell)
            if kind == "continue" and column in begun:
                above, at = goes_on[column] = begun[column]
                above[at] = (*above[at][:2], number)
            elif kind == "restart" or width > 1:
                merged.append((column, column + width - 1, number))
                if kind == "restart":
                    goes_on[column] = merged, len(merged) - 1
            texts += ["" if kind == "continue" and column in begun else text, *[""] * (width - 1)]
        begun = goes_on
        result.append((number, texts, merged))
    yield from result


def _stated(element: Any, holder: str, name: str, otherwise: int) -> int:
    written = value_of(element, holder, name)
    return int(written) if _COLUMNS.fullmatch(written) else otherwise


def _vertical(cell: Any) -> str:
    """Tell if a cell begins a merged one over several rows (restart), or goes on with it (continue)."""
    stated = cell.find(f"{W}tcPr/{W}vMerge")
    return "" if stated is None else stated.get(f"{W}val", "continue")


_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_WP = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}"
_GONE = frozenset(f"{W}{name}" for name in ("del", "moveFrom", "rPr", "pPr"))
_ANCHORS = frozenset({f"{_WP}anchor", f"{_WP}inline"})
_VML = "{urn:schemas-microsoft-com:vml}"
_NOTES = {f"{W}footnoteReference": "Footnote", f"{W}endnoteReference": "Endnote"}
_SHIFTED = {"superscript": RAISED, "subscript": LOWERED}
_LONGEST_FIELD = 3000
_ONLY_POINTS = re.compile(r"(?:[01](?:\.\d{1,4})?pt|[012])")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph: its number, such as "2.2", its text, and the lines of its text boxes, charts and notes."""

    number: str
    text: str
    below: tuple[str, ...] = ()

    @property
    def numbered(self) -> str:
        """The text behind its number; "" without a text."""
        return f"{self.number} {self.text}" if self.number and self.text else self.text

    @property
    def whole(self) -> str:
        """The text with what stands below."""
        return "\n".join(filter(None, (self.numbered, *self.below)))


@dataclass(slots=True)
class _Field:
    """A field that is being read. `begin` is the number of pieces in front of its result."""

    asked: str = ""
    begin: int | None = None


@dataclass(slots=True)
class _Line:
    """The pieces of a paragraph so far, with what stands below it."""

    pieces: list[str] = field(default_factory=list)
    fields: list[_Field] = field(default_factory=list)
    boxes: list[Any] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    notes: list[Any] = field(default_factory=list)

    def space(self) -> None:
        """Part what follows from what is before."""
        if self.pieces and not self.pieces[-1][-1:].isspace():
            self.pieces.append(" ")


class Texts:
    """Writes paragraphs and tables, which have to come in the order of the document.

    `notes` has footnotes and endnotes by their kind and id, with their links. A note stands below the paragraph that
    refers to it first. Notes are not `counted` where their numbers begin again on each page. `chunk` reads the text of
    an embedded file, and `chart` that of a chart.
    """

    def __init__(
        self,
        numbering: Numbering,
        related: Mapping[str, Relation],
        notes: Mapping[tuple[str, str], tuple[Any, Mapping[str, Relation]]],
        *,
        counted: bool,
        chunk: Callable[[Any], Reading],
        chart: Callable[[Any], str],
    ) -> None:
        self._numbering = numbering
        self._related = related
        self._notes = dict(notes)
        self._counted = counted
        self._counts: dict[str, int] = {}
        self._chunk = chunk
        self._chart = chart

    def paragraph(self, paragraph: Any) -> Paragraph:
        """Return the text of a paragraph with its number, notes and text boxes."""
        number = self._numbering.number(paragraph)
        line = self._line(paragraph)
        boxes = [text for box in line.boxes for text in self._lines(box)]
        notes = [text for reference in line.notes if (text := self._note(reference))]
        return Paragraph(number, leveled("".join(line.pieces)).strip(), (*boxes, *line.tables, *notes))

    def rows(self, table: Any) -> Iterator[str]:
        """Yield a table's rows, cells separated by bars. A row with tables in its cells becomes their lines."""
        rows = list[Row]()
        for row in blocks(table, f"{W}tr"):
            properties = row.find(f"{W}trPr")
            if properties is not None and any(is_on(properties, name) for name in ("del", "hidden")):
                continue
            cells = list(blocks(row, f"{W}tc"))
            if any(next(cell.iter(f"{W}tbl"), None) is not None for cell in cells):
                yield from barred(merged_rows(rows))
                rows.clear()
                for cell in cells:
                    yield from self._lines(cell)
            else:
                rows.append((row, [(cell, " ".join(self._lines(cell))) for cell in cells]))
        yield from barred(merged_rows(rows))

    def _lines(self, container: Any) -> Iterator[str]:
        """Yield the paragraphs and rows in a cell, a note or a text box."""
        for block in blocks(container):
            if block.tag == f"{W}tbl":
                yield from self.rows(block)
            elif block.tag == f"{W}altChunk":
                yield self._chunk(block).text
            elif text := self.paragraph(block).whole:
                yield text

    def _note(self, reference: Any) -> str:
        """Return the text of a note that is referred to first. Notes have no notes of their own."""
        kind = _NOTES[reference.tag]
        note, related = self._notes.pop((kind, reference.get(f"{W}id", "")), (None, {}))
        if note is None:
            return ""
        outer = self._notes, self._related
        self._notes, self._related = {}, related
        text = " ".join(" ".join(self._lines(note)).split())
        self._notes, self._related = outer
        if not self._counted or reference.get(f"{W}customMarkFollows") in ("1", "true", "on"):
            return f"{kind}: {text}"
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return f"{kind} {self._counts[kind]}: {text}"

    def _line(self, paragraph: Any) -> _Line:
        line = _Line()
        # A function on the stack runs at the end of its element.
        stack: list[Any | Callable[[], None]] = list(reversed(paragraph))
        while stack:
            element = stack.pop()
            if callable(element):
                element()
                continue
            tag = element.tag
            if tag == f"{W}r" and _hidden(element):
                for step in element.iterchildren(f"{W}fldChar", f"{W}instrText"):
                    _write(step, line)
                continue
            if tag in _GONE or _hidden_shape(element):
                continue
            if tag == f"{W}r" and (mark := _shifted(element)):
                line.pieces.append(mark)
                stack.append(partial(line.pieces.append, LEVEL))
            if tag in (f"{W}hyperlink", f"{W}fldSimple"):
                stack.append(self._ends(element, line))
            if tag == f"{_MC}AlternateContent":
                stack.extend(_shown_form(element))
            elif tag == f"{W}txbxContent":
                line.boxes.append(element)
            elif tag in CHARTS:
                line.tables.append(self._chart(element))
            elif tag in _NOTES:
                line.notes.append(element)
            elif not _write(element, line):
                stack.extend(reversed(element))
        return line

    def _ends(self, element: Any, line: _Line) -> Callable[[], None]:
        """Return the function that writes the address of a link behind its text."""
        relation = self._related.get(element.get(f"{RELATED}id", ""))
        target = relation.target if relation is not None and relation.external else ""
        if anchor := element.get(f"{W}anchor"):
            target = f"{target}#{anchor}" if target else ""
        if element.tag == f"{W}fldSimple":
            target = field_target(element.get(f"{W}instr", ""))
        begin = len(line.pieces)
        return lambda: end_link(line.pieces, begin, target)


def blocks(container: Any, *tags: str) -> Iterator[Any]:
    """Paragraphs and tables, or elements with these tags, also those in content controls and insertions."""
    tags = tags or (f"{W}p", f"{W}tbl", f"{W}altChunk")
    for child in container:
        if child.tag in tags:
            yield child
        elif child.tag == f"{W}sdt":
            for content in child.iterchildren(f"{W}sdtContent"):
                yield from blocks(content, *tags)
        elif child.tag in (f"{W}ins", f"{W}moveTo", f"{W}customXml"):
            yield from blocks(child, *tags)
        elif child.tag == f"{_MC}AlternateContent":
            for form in _shown_form(child):
                yield from blocks(form, *tags)


def _write(element: Any, line: _Line) -> bool:
    """Write an element without others in it. Return whether it was one."""
    tag, pieces = element.tag, line.pieces
    if tag == f"{W}fldChar":
        _field(element.get(f"{W}fldCharType", ""), line)
    elif tag == f"{W}instrText":
        if line.fields and line.fields[-1].begin is None:
            line.fields[-1].asked += (element.text or "")[: _LONGEST_FIELD - len(line.fields[-1].asked)]
    elif line.fields and line.fields[-1].begin is None:
        # What stands between the beginning of a field and its result is not shown.
        return tag != f"{W}r" and not len(element)
    elif tag == f"{W}t":
        pieces.append(element.text or "")
    elif tag in (f"{W}tab", f"{W}ptab") and element.getparent().tag == f"{W}r":
        pieces.append("\t")
    elif tag in (f"{W}br", f"{W}cr"):
        pieces.append("\n")
    elif tag == f"{W}noBreakHyphen":
        pieces.append("-")
    elif tag == f"{M}oMath":
        pieces.append(linear(element, _hidden))
    elif tag in (f"{W}p", f"{M}oMathPara"):
        line.space()
        return False
    else:
        return False
    return True


def _field(step: str, line: _Line) -> None:
    if step == "begin":
        line.fields.append(_Field())
    elif line.fields and step == "separate":
        line.fields[-1].begin = len(line.pieces)
    elif line.fields and step == "end":
        ended = line.fields.pop()
        if ended.begin is not None:
            end_link(line.pieces, ended.begin, field_target(ended.asked))


def _shown_form(element: Any) -> list[Any]:
    """Choose the form to read: of content with several forms, the first that says something."""
    forms = [form for form in element if form.tag in (f"{_MC}Choice", f"{_MC}Fallback")]
    return [form for form in forms if next(form.iter(f"{W}t", f"{M}t"), None) is not None][:1] or forms[:1]


def _hidden_shape(element: Any) -> bool:
    """Tell if an element is a hidden shape."""
    if element.tag in _ANCHORS:
        shape = element.find(f"{_WP}docPr")
        return shape is not None and shape.get("hidden", "") in ("1", "true", "on")
    return element.tag.startswith(_VML) and "visibility:hidden" in element.get("style", "").replace(" ", "")


def _shifted(run: Any) -> str:
    """Return the mark of a raised or lowered run, "" for others."""
    return _SHIFTED.get(value_of(run, "rPr", "vertAlign"), "")


def _hidden(run: Any) -> bool:
    """Tell if a run is hidden, at most a point high, or white without a known background colour."""
    properties = run.find(f"{W}rPr")
    if properties is None:
        return False
    if is_on(properties, "vanish") or is_on(properties, "webHidden"):
        return True
    if _ONLY_POINTS.fullmatch(value_of(properties, "sz")):
        return True
    return value_of(properties, "color").lower() == "ffffff" and not _on_colour(run, properties)


def _on_colour(run: Any, properties: Any) -> bool:
    """Tell if a run may have a background colour: its own, its paragraph's, a table's or a shape's."""
    if any(properties.find(f"{W}{name}") is not None for name in ("shd", "highlight")):
        return True
    for around in run.iterancestors(f"{W}p", f"{W}tbl", f"{W}txbxContent", f"{W}body"):
        if around.tag != f"{W}p":
            return bool(around.tag != f"{W}body")
        if around.find(f"{W}pPr/{W}shd") is not None or around.find(f"{W}pPr/{W}pStyle") is not None:
            return True
    return False


_WHAT = "a Word document (.docx)"


def read(content: bytes, origin: FileOrigin) -> Reading:
    """Text, title, author and date. Raises `Unreadable` for damaged files, and for those too large when unpacked."""
    return _read(content, embedded=False)


def _read(content: bytes, *, embedded: bool) -> Reading:
    """Return a document. One that is `embedded` in another embeds no further files."""
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
