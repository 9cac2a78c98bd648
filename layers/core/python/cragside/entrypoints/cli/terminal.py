"""Prints to a terminal, a pipe or a file, and asks at a terminal."""

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

from cragside.domain.errors import ValidationError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


PLAIN_WIDTH = 100


def output() -> "Console":
    """Return standard output. It has a fixed width and no colours if it is not a terminal."""
    return _console(stderr=False)


def notices() -> "Console":
    """Return standard error, for remarks. Results go to `output`."""
    return _console(stderr=True)


def progress(*, as_json: bool) -> "Console":
    """Return standard error for progress. It is mute unless a person watches, without --json."""
    console = _console(stderr=True)
    console.quiet = as_json or not sys.stderr.isatty()
    return console


def print_table(console: "Console", table: "Table") -> None:
    """Print a table without trailing blanks and empty lines."""
    with console.capture() as captured:
        console.print(table)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    console.file.write("\n".join(line for line in lines if line) + "\n")


def print_json(value: Any) -> None:
    """Print one JSON document in UTF-8, whatever the encoding of the terminal."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2).encode("utf-8", "replace"))


def printable(text: str) -> str:
    """Remove the characters that control a terminal. Line ends and tabs stay."""
    return "".join(
        character if character.isprintable() or character in "\n\t" else " " if character.isspace() else ""
        for character in text
    )


def json_option(what: str) -> Any:
    """Make the option --json of a command that prints `what` with it."""
    return typer.Option("--json", help=f"Print {what}, and nothing else.")


def print_result(result: Any, show: Callable[[Any], None], *, as_json: bool) -> None:
    """Print a result as JSON, or let `show` print it for people."""
    if as_json:
        print_json(result)
    else:
        show(result)


def on_terminal() -> bool:
    """Tell if standard input is a terminal, so that somebody can be asked."""
    return sys.stdin.isatty()


def agreed(found: str, question: str, refusal: str, *, yes: bool) -> bool:
    """Ask a question about what was found, unless `yes` answers it.

    Raises `ValidationError` with the refusal where there is no terminal.
    """
    if yes:
        return True
    if not on_terminal():
        raise ValidationError(printable(f"{found} {refusal}"))
    return typer.confirm(printable(f"{found} {question}"), err=True)


def _console(*, stderr: bool) -> "Console":
    from rich.console import Console  # here: --help and --version do without, and start twice as fast

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PLAIN_WIDTH
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


class WordWrap:
    """Breaks lines at words. A text may come in pieces: its last word is held back until the next piece or `end`.

    A broken line goes on below its first word. A word that is longer than a line, such as an address, is not broken.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._begin_line()

    def feed(self, piece: str) -> str:
        """Return the part of the text that can be shown now."""
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
        """Return the rest of the text."""
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
