"""Output to a terminal, a pipe or a file."""

import json
import sys
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PLAIN_WIDTH = 100


def output() -> "Console":
    """Standard output. It has a fixed width and no colours if it is not a terminal."""
    return _console(stderr=False)


def notices() -> "Console":
    """Standard error, for progress and remarks. Results go to `output`."""
    return _console(stderr=True)


def progress(*, as_json: bool) -> "Console":
    """Standard error for progress. Mute unless a person watches: at a terminal, by a command that prints no JSON."""
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
    """The text without characters that control a terminal. Line ends and tabs stay."""
    return "".join(
        character if character.isprintable() or character in "\n\t" else " " if character.isspace() else ""
        for character in text
    )


def _console(*, stderr: bool) -> "Console":
    from rich.console import Console  # here: --help and --version do without, and start twice as fast

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PLAIN_WIDTH
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)
