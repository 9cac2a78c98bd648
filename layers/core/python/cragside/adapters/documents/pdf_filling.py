"""Puts what was written onto a PDF page beside the labels that are printed on it."""

from collections.abc import Sequence

from cragside.adapters.documents.pdf_annotations import Written
from cragside.adapters.documents.pdf_field_columns import FieldColumns
from cragside.adapters.documents.pdf_layout import Box, Piece

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
    told = [each for each in rest if each.kind != "note" or _letters(each.text) not in everything]
    return list(dict.fromkeys(_line(each) for each in told if not each.text.startswith("[ ]")))


def _placed(each: Written, pieces: Sequence[Piece], labelled: set[int], columns: FieldColumns) -> bool:
    """Write a value beside its label. Return False if there is none."""
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
