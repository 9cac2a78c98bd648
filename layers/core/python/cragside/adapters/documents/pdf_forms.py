"""Reads what was written onto a PDF page, and puts it beside the labels that are printed there."""

import ctypes
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from cragside.adapters.documents.pdf_layout import Box, Piece

# Of one page. A dense form has about 300 fields.
_MOST_ANNOTATIONS = 2000
_MOST_OPTIONS = 1000
_LONGEST = 20_000
_LONGEST_NAME = 200
_NOT_SHOWN = 0x1 | 0x2 | 0x20  # invisible, hidden, not viewed
_PASSWORD = 1 << 13
# A field or text of this size, in 1/72 inch, cannot be seen.
_UNSEEN = 1.0
# Text of a smaller font, in 1/72 inch, cannot be seen either, nor what is as transparent as this.
_SMALLEST_FONT = 2.0
_TRANSPARENT = 0.05
_WHITE = 0.99
_LONGEST_LOOK = 2000
_MOST_PAINTED = 100
_SEGMENTS_OF_A_BOX = 5
# In the operators of a page: `/Helv 11 Tf`, `1 g`, `1 1 1 rg`, `0 0 0 0 k`, `1 scn`, `3 Tr`.
_NUMBER = r"[+-]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})"
_FONT_SIZE = re.compile(rf"(?<![\w.])({_NUMBER})\s{{1,9}}Tf\b")
_COLOUR = re.compile(rf"(?<![\d.])((?:{_NUMBER}\s{{1,9}}){{1,4}})(g|rg|k|scn?)\b")
_DRAWN = re.compile(r"(?<![\w.])([0-7])\s{1,9}Tr\b")
_NOT_DRAWN = ("3", "7")
# pdfium paints a background without a colour black.
_UNPAINTED = re.compile(r"/GS gs q\n[\d. -]{1,80} re f\n")
# Values of check boxes that only say that they are checked.
_PLAINLY_ON = re.compile(r"(?:on|off|\d{1,9}|)", re.IGNORECASE)
_NUMBERED = re.compile(r"\[\d{1,9}\]")
_WORD = re.compile(r"[^\W\d_]{3}")


@dataclass(frozen=True, slots=True)
class Written:
    """Something written onto a page. `name` says what it is if no label stands near: a tooltip or an author.

    The text of a `tick` is `[x]` or `[ ]`, and `name` may hold its value.
    """

    kind: Literal["value", "tick", "typed", "note"]
    text: str
    box: Box
    name: str = ""


def written(page: Any, form: Any) -> list[Written]:
    """Return all that people see, in the file's order. `form` is pdfium's environment of the form, None without one."""
    import pypdfium2.raw as pdfium

    found = list[Written]()
    shown = Box(*page.get_bbox())
    for index in range(min(pdfium.FPDFPage_GetAnnotCount(page.raw), _MOST_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page.raw, index)
        if not annotation:
            continue
        try:
            found += _read(annotation, form, shown, page.get_rotation())
        finally:
            pdfium.FPDFPage_CloseAnnot(annotation)
    return [each for each in dict.fromkeys(found) if each.text]


def _read(annotation: Any, form: Any, shown: Box, rotation: int) -> Iterator[Written]:
    import pypdfium2.raw as pdfium

    kind = pdfium.FPDFAnnot_GetSubtype(annotation)
    rectangle = pdfium.FS_RECTF()
    if pdfium.FPDFAnnot_GetFlags(annotation) & _NOT_SHOWN:
        return
    if not pdfium.FPDFAnnot_GetRect(annotation, ctypes.byref(rectangle)):
        return
    box = Box(
        min(rectangle.left, rectangle.right),
        min(rectangle.bottom, rectangle.top),
        max(rectangle.left, rectangle.right),
        max(rectangle.bottom, rectangle.top),
    )
    if not box.meets(shown) or _looks_unseen(annotation):
        return
    place = box.turned(rotation)
    if kind in (pdfium.FPDF_ANNOT_WIDGET, pdfium.FPDF_ANNOT_FREETEXT) and (
        box.width <= _UNSEEN or box.top - box.bottom <= _UNSEEN
    ):
        return
    if kind == pdfium.FPDF_ANNOT_WIDGET:
        yield from _field(annotation, form, place)
    elif kind == pdfium.FPDF_ANNOT_FREETEXT:
        yield Written("typed", _entry(annotation, b"Contents"), place)
    # What a reviewer decided on a note ("Accepted set by Ada") is stored as a note with a state.
    elif kind in _notes() and not pdfium.FPDFAnnot_HasKey(annotation, b"StateModel"):
        author = _entry(annotation, b"T")[:_LONGEST_NAME]
        yield Written("note", _entry(annotation, b"Contents"), place, author)


def _looks_unseen(annotation: Any) -> bool:
    """Tell if it is transparent, or its text tiny, not drawn, or white without a background of its own."""
    import pypdfium2.raw as pdfium

    opacity = ctypes.c_float()
    for key in (b"CA", b"ca"):
        if pdfium.FPDFAnnot_GetNumberValue(annotation, key, ctypes.byref(opacity)) and opacity.value <= _TRANSPARENT:
            return True
    look, style = _entry(annotation, b"DA")[:_LONGEST_LOOK], _entry(annotation, b"DS")[:_LONGEST_LOOK]
    # A size of 0 fits the text into its box.
    sizes = [float(size) for size in _FONT_SIZE.findall(look)]
    if sizes and 0 < abs(sizes[-1]) < _SMALLEST_FONT:
        return True
    if _DRAWN.findall(look)[-1:] in [[mode] for mode in _NOT_DRAWN]:
        return True
    written, operator = next(reversed(_COLOUR.findall(look)), ("0", "g"))
    parts = [float(part) for part in written.split()]
    in_inks = operator == "k" or (len(parts) == 4 and operator in ("sc", "scn"))
    white = all((1 - part if in_inks else part) >= _WHITE for part in parts)
    on_colour = (white or style != "") and _has_background(annotation)
    if style:
        from cragside.adapters.documents.hidden_text import Look, declarations

        stated = Look(behind=None if on_colour else (255, 255, 255)).within(declarations(style))
        return stated.unseen or (white and stated.colour is None and not on_colour)
    return white and not on_colour


def _has_background(annotation: Any) -> bool:
    """Tell if its appearance, which pdfium makes in files with a form, paints something that is not white."""
    import pypdfium2.raw as pdfium

    parts = _four()
    if pdfium.FPDFAnnot_GetColor(annotation, pdfium.FPDFANNOT_COLORTYPE_Color, *map(ctypes.byref, parts)):
        # It has no appearance. No colour is told as black.
        colour = [part.value for part in parts[:3]]
        return any(colour) and not _is_white(colour)
    first = 1 if _UNPAINTED.match(_string(partial(pdfium.FPDFAnnot_GetAP, annotation, 0))) else 0
    for index in range(first, min(pdfium.FPDFAnnot_GetObjectCount(annotation), _MOST_PAINTED)):
        painted = pdfium.FPDFAnnot_GetObject(annotation, index)
        kind = pdfium.FPDFPageObj_GetType(painted)
        if kind != pdfium.FPDF_PAGEOBJ_TEXT and not (kind == pdfium.FPDF_PAGEOBJ_PATH and _is_no_ground(painted)):
            return True
    return False


def _is_no_ground(path: Any) -> bool:
    """Tell if a path is no background: it is white, transparent or a frame."""
    import pypdfium2.raw as pdfium

    fill, stroke = ctypes.c_int(), ctypes.c_int()
    pdfium.FPDFPath_GetDrawMode(path, ctypes.byref(fill), ctypes.byref(stroke))
    is_frame = fill.value == pdfium.FPDF_FILLMODE_ALTERNATE and pdfium.FPDFPath_CountSegments(path) > _SEGMENTS_OF_A_BOX
    if is_frame or fill.value == pdfium.FPDF_FILLMODE_NONE:
        return True
    parts = _four()
    pdfium.FPDFPageObj_GetFillColor(path, *map(ctypes.byref, parts))
    *colour, alpha = (part.value for part in parts)
    return alpha <= 255 * _TRANSPARENT or _is_white(colour)


def _four() -> list[ctypes.c_uint]:
    return [ctypes.c_uint() for _ in range(4)]


def _is_white(colour: list[int]) -> bool:
    return min(colour) >= 255 * _WHITE


def _notes() -> tuple[int, ...]:
    """Return the annotations whose `Contents` a viewer shows as a note."""
    import pypdfium2.raw as pdfium

    names = "TEXT HIGHLIGHT UNDERLINE SQUIGGLY STRIKEOUT SQUARE CIRCLE LINE POLYGON POLYLINE INK CARET STAMP"
    return tuple(getattr(pdfium, f"FPDF_ANNOT_{name}") for name in (*names.split(), "FILEATTACHMENT"))


def _field(annotation: Any, form: Any, box: Box) -> Iterator[Written]:
    import pypdfium2.raw as pdfium

    kind = pdfium.FPDFAnnot_GetFormFieldType(form, annotation) if form else pdfium.FPDF_FORMFIELD_UNKNOWN
    if kind in (pdfium.FPDF_FORMFIELD_PUSHBUTTON, pdfium.FPDF_FORMFIELD_SIGNATURE):
        return
    if kind in (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON):
        checked = pdfium.FPDFAnnot_IsChecked(form, annotation)
        value = _of_field(pdfium.FPDFAnnot_GetFormFieldExportValue, form, annotation) if checked else ""
        meant = "" if _PLAINLY_ON.fullmatch(value) else value
        name = _name(form, annotation)
        yield Written("tick", " ".join(filter(None, ("[x]" if checked else "[ ]", meant))), box, name)
        return
    if form and pdfium.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD:
        return
    if kind in (pdfium.FPDF_FORMFIELD_COMBOBOX, pdfium.FPDF_FORMFIELD_LISTBOX):
        text = ", ".join(_chosen(form, annotation))
    elif kind == pdfium.FPDF_FORMFIELD_TEXTFIELD:
        text = _of_field(pdfium.FPDFAnnot_GetFormFieldValue, form, annotation)
    else:
        return
    yield Written("value", text, box, _name(form, annotation))


def _chosen(form: Any, annotation: Any) -> list[str]:
    """Return the choices as people see them, else the value that was typed."""
    import pypdfium2.raw as pdfium

    count = min(pdfium.FPDFAnnot_GetOptionCount(form, annotation), _MOST_OPTIONS)
    chosen = [
        _string(partial(pdfium.FPDFAnnot_GetOptionLabel, form, annotation, index))
        for index in range(count)
        if pdfium.FPDFAnnot_IsOptionSelected(form, annotation, index)
    ]
    return chosen or [*filter(None, (_of_field(pdfium.FPDFAnnot_GetFormFieldValue, form, annotation),))]


def _name(form: Any, annotation: Any) -> str:
    """Return the field's tooltip, else its name if that holds a word."""
    import pypdfium2.raw as pdfium

    tooltip = _of_field(pdfium.FPDFAnnot_GetFormFieldAlternateName, form, annotation)
    if tooltip:
        return " ".join(tooltip[:_LONGEST_NAME].split())
    full = _of_field(pdfium.FPDFAnnot_GetFormFieldName, form, annotation)
    last = _NUMBERED.sub("", full[-_LONGEST_NAME:].rpartition(".")[2]).replace("_", " ").strip()
    return last if _WORD.search(last) else ""


def _of_field(read: Callable[..., int], form: Any, annotation: Any) -> str:
    return _string(partial(read, form, annotation))


def _entry(annotation: Any, key: bytes) -> str:
    import pypdfium2.raw as pdfium

    return _string(partial(pdfium.FPDFAnnot_GetStringValue, annotation, key))


def _string(read: Callable[[Any, int], int]) -> str:
    """Return a string of pdfium, cut to a bearable length."""
    size = read(None, 0)
    if size <= 2:
        return ""
    buffer = (ctypes.c_ushort * (size // 2))()
    read(buffer, size)
    text = bytes(memoryview(buffer)[: _LONGEST + 1]).decode("utf-16-le", "ignore").partition("\0")[0]
    return "\n".join(line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")).strip()


# The rows of a table are at most so many heights of a field apart, so that one may be empty.
_ROWS_APART = 2.5
_LOOKED_BACK = 100
_ALIGNED = 3.0  # 1/72 inch


class FieldColumns:
    """The columns of the fields of a page, which come from its top to its bottom."""

    def __init__(self) -> None:
        self._fields: list[tuple[Box, Piece]] = []
        self._rows: list[list[tuple[Written, Piece]]] = []
        self._beside: dict[int, list[tuple[Piece, str, str]]] = defaultdict(list)

    def enter(self, each: Written, above: Piece | None) -> tuple[Piece | None, bool]:
        """Return the name of a field's column, and whether other fields stand between both.

        `above` is the text above it.
        """
        name = above
        if name is None:
            fields = [
                (box.bottom - each.box.top, piece)
                for box, piece in self._fields[-_LOOKED_BACK:]
                if abs(box.left - each.box.left) <= _ALIGNED and abs(box.right - each.box.right) <= _ALIGNED
            ]
            near = [one for one in fields if -_ALIGNED <= one[0] <= _ROWS_APART * each.box.height]
            name = min(near, key=lambda one: one[0])[1] if near else None
        if name is not None:
            self._fields.append((each.box, name))
        return name, above is None

    def add(self, each: Written, name: Piece) -> None:
        """Keep a value whose only label is the heading of its column."""
        if not self._rows or not self._rows[-1][-1][0].box.beside(each.box):
            self._rows.append([])
        self._rows[-1].append((each, name))

    def rows(self) -> Iterator[Written]:
        """Yield the rows of such values, each behind the name of its column."""
        for row in self._rows:
            texts = (f"{_plain(name)}: {each.text}" for each, name in row)
            yield Written("value", "; ".join(texts), row[0][0].box)

    def add_beside(self, label: Piece, text: str, name: Piece | None) -> None:
        """Keep a value that was written behind the label of its row."""
        self._beside[id(label)].append((label, text, _plain(name) if name is not None else ""))

    def name_values(self) -> None:
        """Write the names of their columns before the values that share the label of their row."""
        for values in self._beside.values():
            names = [name for _, _, name in values]
            label = values[0][0]
            if len(set(filter(None, names))) == len(values) > 1 and label.added == [text for _, text, _ in values]:
                label.added = [f"{name}: {text};" for _, text, name in values]
                label.added[-1] = label.added[-1].rstrip(";")


def _plain(name: Piece) -> str:
    return name.text.rstrip(": ")


# A label stands at most so many heights of its line above its field, and typed text so far behind its label.
_ABOVE = 1.5
_BEHIND = 8.0
# Pieces that are further above or below, in 1/72 inch, are not looked at.
_NEAR = 60.0
_TOLERANCE = 3.0  # 1/72 inch, by which a field may overlap its label


def fill_in(written: Sequence[Written], pieces: Sequence[Piece], body: str) -> list[str]:
    """Add each value to the piece that is its label. Return those without a label, as lines, and the notes.

    What `body`, the text of the page, says in the same place is not said again.
    """
    if not written:
        return []
    rest, labelled = list[Written](), set[int]()
    heights = [(piece.box.middle, piece) for piece in pieces]
    columns = FieldColumns()
    for each in sorted(written, key=lambda each: (-each.box.top, each.box.left)):
        low, high = each.box.bottom - _NEAR, each.box.top + _NEAR
        near = [piece for middle, piece in heights if low <= middle <= high]
        within = [piece for piece in near if each.box.holds(piece.box)]
        drawn = _letters("".join(piece.text for piece in within if not piece.blank)) if pieces else _letters(body)
        if _letters(each.text) in drawn and _letters(each.text):
            continue
        if each.kind == "note" or not _placed(each, near, labelled, columns):
            rest.append(each)
            continue
        for piece in within:
            if piece.blank:
                piece.text = ""
    everything = _letters(body)
    columns.name_values()
    rest += columns.rows()
    shown = [each for each in rest if each.kind != "note" or _letters(each.text) not in everything]
    return list(dict.fromkeys(_line(each) for each in shown if not each.text.startswith("[ ]")))


def _placed(each: Written, pieces: Sequence[Piece], labelled: set[int], columns: FieldColumns) -> bool:
    """Write a value beside its label. Returns False if it has none."""
    line = [piece for piece in pieces if not piece.blank and _in_line(each.box, piece)]
    behind = min(
        (piece for piece in line if piece.box.left >= each.box.right - _TOLERANCE),
        key=lambda piece: piece.box.left,
        default=None,
    )
    before = max(
        (piece for piece in line if piece.box.right <= each.box.left + _TOLERANCE),
        key=lambda piece: piece.box.right,
        default=None,
    )
    if each.kind == "tick" and behind:
        to_label = behind.box.left - each.box.right
        if not before or to_label <= 1.2 * (each.box.left - before.box.right) + 1:
            behind.text = f"{each.text[:3]} {behind.text}"
            behind.changed = True
            return True
    if each.kind == "typed":
        asks = before and (
            before.text.endswith(":") or any(piece.blank and each.box.holds(piece.box) for piece in pieces)
        )
        if not (before and asks and each.box.left - before.box.right <= _BEHIND * before.box.height):
            return False
    printed = [piece for piece in pieces if not piece.blank]
    label = before or _above(each.box, [piece for piece in printed if id(piece) not in labelled])
    name, is_below = columns.enter(each, _above(each.box, printed)) if each.kind != "typed" else (None, False)
    if label is None and name is not None and is_below:
        columns.add(each, name)
        return True
    if label is None:
        return False
    if before is not None:
        columns.add_beside(before, each.text, name)
    labelled.add(id(label))
    goes_on = behind is not None and behind.box.left - each.box.right <= behind.box.height
    if not label.added and not goes_on and label.text[-1:].isalnum() and each.kind != "tick":
        label.text += ":"
    label.added.append(each.text)
    label.changed = True
    return True


def _in_line(box: Box, piece: Piece) -> bool:
    """Tell if the piece stands beside the first line of the box."""
    return max(box.bottom, box.top - 2 * piece.box.height) - 1 <= piece.box.middle <= box.top + 1


def _above(box: Box, pieces: Sequence[Piece]) -> Piece | None:
    near = [
        piece
        for piece in pieces
        if piece.box.left <= box.right and piece.box.right >= box.left
        # The height of a line holds the space below its letters.
        if -piece.box.height / 2 <= piece.box.bottom - box.top <= _ABOVE * piece.box.height
    ]
    return min(near, key=lambda piece: piece.box.bottom, default=None)


def _line(each: Written) -> str:
    if each.kind == "note":
        return f"Note ({each.name}): {each.text}" if each.name else f"Note: {each.text}"
    return f"{each.name}: {each.text}" if each.name else each.text


def _letters(text: str) -> str:
    return "".join(letter for letter in text if letter.isalnum()).casefold()
