"""Knows the tables of a PDF form: fields in rows, below the names of their columns."""

from collections import defaultdict
from collections.abc import Iterator

from cragside.adapters.documents.pdf_annotations import Written
from cragside.adapters.documents.pdf_layout import Box, Piece

# The rows of a table are at most so many heights of a field apart, so that one may be empty.
_ROWS_APART = 2.5
_LOOKED_BACK = 100
_TOLERANCE = 3.0  # 1/72 inch


class FieldColumns:
    """The columns of the fields of a page, which come from its top to its bottom."""

    def __init__(self) -> None:
        self._fields: list[tuple[Box, Piece]] = []
        self._rows: list[list[tuple[Written, Piece]]] = []
        self._beside: dict[int, list[tuple[Piece, str, str]]] = defaultdict(list)

    def enter(self, each: Written, above: Piece | None) -> tuple[Piece | None, bool]:
        """The name of a field's column, and whether other fields stand between both. `above` is the text above it."""
        name = above
        if name is None:
            fields = [
                (box.bottom - each.box.top, piece)
                for box, piece in self._fields[-_LOOKED_BACK:]
                if abs(box.left - each.box.left) <= _TOLERANCE and abs(box.right - each.box.right) <= _TOLERANCE
            ]
            near = [one for one in fields if -_TOLERANCE <= one[0] <= _ROWS_APART * each.box.height]
            name = min(near, key=lambda one: one[0])[1] if near else None
        if name is not None:
            self._fields.append((each.box, name))
        return name, above is None

    def add(self, each: Written, name: Piece) -> None:
        """Keep a value that has no label but the name of its column."""
        if not self._rows or not self._rows[-1][-1][0].box.beside(each.box):
            self._rows.append([])
        self._rows[-1].append((each, name))

    def rows(self) -> Iterator[Written]:
        """The rows of such values, each behind the name of its column."""
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
