"""Breaks long lines between words, for people who read at a terminal. Pipes and files get lines as they are."""

from typing import TYPE_CHECKING

from cragside.entrypoints.cli.terminal import printable

if TYPE_CHECKING:
    from rich.console import Console


class WordWrap:
    """Breaks lines at words. A text may come in pieces: its last word is held back until the next piece or `end`.

    A broken line goes on below its first word. A word that is longer than a line, such as an address, is not broken.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._begin_line()

    def feed(self, piece: str) -> str:
        """What of the text can be shown now."""
        from rich.cells import cell_len

        shown: list[str] = []
        for character in piece:
            if character == "\n":
                shown += (self._placed(), "\n")
                self._begin_line()
            elif character.isspace() and character != "\xa0":
                shown.append(self._placed())
                self._blanks += " " if character != "\t" else "    "
            elif cell_len(character) == 2:  # Chinese and Japanese lines may be broken anywhere
                shown.append(self._placed())
                self._word = character
                shown.append(self._placed())
            else:
                self._word += character
        return "".join(shown)

    def end(self) -> str:
        """The rest of the text."""
        return self._placed()

    def _begin_line(self) -> None:
        self._column, self._indent, self._blanks, self._word = 0, "", "", ""

    def _placed(self) -> str:
        from rich.cells import cell_len

        if not self._word:
            return ""
        before, word = self._blanks, self._word
        self._blanks = self._word = ""
        if not self._column:
            self._indent = before if len(before) <= self._width // 2 else ""
        elif self._column + len(before) + cell_len(word) > self._width:
            self._column = len(self._indent) + cell_len(word)
            return f"\n{self._indent}{word}"
        self._column += len(before) + cell_len(word)
        return before + word


def print_prose(console: "Console", text: str, *, style: str | None = None) -> None:
    """Print a text without control characters, on a terminal with its lines broken at words."""
    shown = printable(text)
    if console.is_terminal:
        wrap = WordWrap(console.width)
        shown = wrap.feed(shown) + wrap.end()
    console.print(shown, style=style, soft_wrap=True)
