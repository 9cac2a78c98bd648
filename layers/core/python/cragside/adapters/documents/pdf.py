"""Reads PDF with pdfium: the text of each page, and what was written onto it. Runs in a child process."""

import ctypes
import math
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from cragside.adapters.documents.ocr import MAX_PIXELS, Recogniser, recogniser
from cragside.adapters.documents.pdf_forms import fill_in, written
from cragside.adapters.documents.pdf_layout import DIVIDED, Box, Layouts, composed, in_reading_order, likely
from cragside.adapters.documents.reading import (
    MAX_CHARACTERS,
    NO_TEXT,
    Composer,
    FileOrigin,
    Headings,
    Reading,
    Unreadable,
    label,
    present,
)

MAX_PAGES = 5000
_MOST_BOOKMARKS = 5000
_LONGEST_BOOKMARK = 2000
_LONGEST_NUMBER = 20
_DATE = re.compile(r"D?:?(\d{4})(\d{2})?(\d{2})?(?:(\d{2})(\d{2})(\d{2})?)?(?:([+-])(\d{2})'?(\d{2})?|(Z))?")
# Of one page. Frames of tables are drawn as lines or as rectangles that are no thicker than so many 1/72 inch.
_MOST_LINES = 5000
_THICK = 3


def read(content: bytes, origin: FileOrigin) -> Reading:
    """Pages, title, author and date. Raises `Unreadable` for encrypted, damaged, empty or overlong files."""
    return read_with(content, None)


def read_with(content: bytes, recognise: Callable[[Any], str] | None) -> Reading:
    """Read a PDF. `recognise` returns the text of a page that has no text layer but shows something."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(content)
        document.init_forms()
        count = len(document)
    except pypdfium2.PdfiumError as error:
        raise Unreadable(_refusal(str(error))) from None
    if count == 0:
        raise Unreadable("is a PDF without pages")
    if count > MAX_PAGES:
        raise Unreadable(f"has {count:,} pages, the limit is {MAX_PAGES:,}: split it")
    composer, layouts = Composer(), Layouts()
    sections = _sections(document)
    pictured: list[int] = []
    for number in range(1, count + 1):
        try:
            text, filled, shows = _text(document, number - 1, layouts, recognise)
        except pypdfium2.PdfiumError:
            raise Unreadable(f"is damaged: page {number} of {count} cannot be read") from None
        composer.mark(page=number, section=sections.get(number, ""))
        composer.add("\n\n".join(filter(None, (text, filled))))
        if shows and not text:
            pictured.append(number)
    if not pictured and not composer.text.strip():
        raise Unreadable(NO_TEXT)
    stated = document.get_metadata_dict()
    tier1 = present(
        {
            "title": stated.get("Title"),
            "author": stated.get("Author"),
            "pageCount": count,
            "createdDate": _date(stated.get("CreationDate", "")),
        }
    )
    return Reading(composer.text, "pdf", tier1.get("title", ""), composer.marks, tier1, pictured=pictured)


def _text(document: Any, index: int, layouts: Layouts, recognise: Callable[[Any], str] | None) -> tuple[str, str, bool]:
    """Return the text of a page, what was written onto it beside no label, and whether the page shows anything."""
    page = document.get_page(index)
    try:
        added = written(page, document.formenv)
        layer = page.get_textpage()
        try:
            if layer.count_chars() > MAX_CHARACTERS:
                raise Unreadable(f"holds more than {MAX_CHARACTERS:,} characters of text on page {index + 1}")
            text = _tidied(layer.get_text_bounded())
            placed = []
            if added or likely(layer, page.get_rotation()):
                placed = layouts.pieces(layer, Box(*page.get_bbox()), page.get_rotation())
        finally:
            layer.close()
        shows = bool(text) or next(page.get_objects(max_depth=1), None) is not None
        if recognise and shows and not text:
            text = recognise(page)
        ordered = in_reading_order(placed, lambda box: _ruled(page, box))
        rest = fill_in(added, placed, text)
        if ordered or any(piece.changed for piece in placed):
            text = _tidied(composed(ordered or placed))
        return text, _tidied("\n".join(rest)), shows
    finally:
        page.close()


def _ruled(page: Any, place: Box) -> bool:
    """Tell if a horizontal line is drawn inside a place, from its left half to its right half."""
    import pypdfium2.raw as pdfium

    middle, turned = (place.left + place.right) / 2, page.get_rotation()
    drawn = islice(page.get_objects(filter=(pdfium.FPDF_PAGEOBJ_PATH,), max_depth=2), _MOST_LINES)
    return any(
        box.left < middle - place.width / 4
        and box.right > middle + place.width / 4
        and box.height < _THICK
        and place.bottom < box.middle < place.top
        for box in (Box(*line.get_bounds()).turned(turned) for line in drawn)
    )


def _tidied(text: str) -> str:
    lines = DIVIDED.sub("", text).replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "").split("\n")
    return "\n".join(line.rstrip() for line in lines).strip()


def _sections(document: Any) -> dict[int, str]:
    """Return the path of bookmarks of each page, and the number that it shows if that is another one."""
    headings, begun = Headings(), dict[int, str]()
    for level, title, page in _bookmarks(document):
        begun.setdefault(page, headings.enter(level, title))
    sections, path = dict[int, str](), ""
    for number in range(1, len(document) + 1):
        path = begun.get(number, path)
        sections[number] = " > ".join(filter(None, (path, _printed(document, number))))
    return sections


def _printed(document: Any, number: int) -> str:
    """Return the number that a page shows, which readers look for, if that is not its place in the file."""
    try:
        printed = label(document.get_page_label(number - 1), _LONGEST_NUMBER)
    except UnicodeError:
        return ""
    return f"printed page {printed}" if printed not in ("", str(number)) else ""


def _bookmarks(document: Any) -> Iterator[tuple[int, str, int]]:
    """Level, title and page of each bookmark, without those that lead nowhere or form circles."""
    import pypdfium2

    try:
        for _, bookmark in zip(range(_MOST_BOOKMARKS), document.get_toc(max_depth=8), strict=False):
            target = bookmark.get_dest()
            index = target.get_index() if target else None
            title = bookmark.get_title() if index is not None else ""
            if index is not None and title.strip():
                yield bookmark.level, title[:_LONGEST_BOOKMARK], index + 1
    except (pypdfium2.PdfiumError, UnicodeError, ValueError, ctypes.ArgumentError):
        return


def _refusal(error: str) -> str:
    reasons = {
        "password": "is encrypted: save it without a password",
        "security": "is encrypted in a way that cannot be read: save it without encryption",
    }
    return next((reason for word, reason in reasons.items() if word in error.lower()), "is damaged, or no PDF")


def _date(written: str) -> str | None:
    """PDF's `D:20240131120000+01'00'` as ISO 8601."""
    found = _DATE.match(written.strip())
    if found is None:
        return None
    year, month, day, hour, minute, second, sign, zone_hours, zone_minutes, utc = found.groups()
    date = "-".join(part for part in (year, month, day) if part)
    if not (day and hour):
        return date
    zone = "Z" if utc else f"{sign}{zone_hours}:{zone_minutes or '00'}" if sign else ""
    return f"{date}T{hour}:{minute}:{second or '00'}{zone}"


# A PDF's unit is 1/72 inch, and Tesseract reads best at 300 dots an inch.
_SCALE = 300 / 72


def read_scan(content: bytes, origin: FileOrigin) -> Reading:
    """Read a PDF with pages that are pictures of text, which OCR recognises."""
    with recogniser(origin.ocr) as ocr:
        reading = read_with(content, lambda page: _recognised(page, ocr))
    if not reading.text.strip():
        raise Unreadable(NO_TEXT)
    return reading


def _recognised(page: Any, ocr: Recogniser) -> str:
    width, height = page.get_size()
    if not (width > 0 and height > 0):
        return ""
    scale = min(_SCALE, math.sqrt(MAX_PIXELS / (width * height)))
    if min(width, height) * scale < 1:
        return ""
    bitmap = page.render(scale=scale, grayscale=True)
    try:
        return ocr.text(bitmap.to_numpy().tobytes(), bitmap.width, bitmap.height)
    finally:
        bitmap.close()
