"""A terminal shows progress on standard error and breaks lines at words. Pipes get neither."""

import json
import os
import pty
import struct
import subprocess
import termios
from fcntl import ioctl

import pytest

from cragside.entrypoints.cli.terminal import WordWrap
from tests.programs import CRAGSIDE

pytestmark = pytest.mark.slow

WIDTH = 50


class AtTerminal:
    """Runs the program with standard output or standard error at a terminal."""

    def __init__(self, home):
        self.environment = {**os.environ, "RAG_HOME": str(home), "TERM": "xterm", "NO_COLOR": "1"}
        self.environment.pop("COLUMNS", None)

    def __call__(self, *arguments, terminal="stderr"):
        """The exit code, and what came on standard output and standard error. `terminal` is which of them is one."""
        ours, theirs = pty.openpty()
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, WIDTH, 0, 0))
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        if terminal:
            pipes[terminal] = theirs
        with subprocess.Popen(
            [*CRAGSIDE, *arguments], stdin=subprocess.DEVNULL, env=self.environment, **pipes
        ) as running:
            os.close(theirs)
            seen = b""
            while True:
                try:
                    piece = os.read(ours, 65536)
                except OSError:  # the program has closed its end
                    break
                if not piece:
                    break
                seen += piece
            os.close(ours)
            stdout, stderr = running.communicate(timeout=60)
        told = {"stdout": stdout, "stderr": stderr} | ({terminal: seen} if terminal else {})
        return running.returncode, *(told[name].decode().replace("\r\n", "\n") for name in ("stdout", "stderr"))


@pytest.fixture
def at_terminal(tmp_path):
    return AtTerminal(tmp_path / "home")


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(3):
        (folder / f"n{number}.md").write_text(f"# Shed {number}\n\nBoat shed {number} is rented by the club.\n")
    return folder


def test_ingest_shows_files_and_sizes_from_the_start(at_terminal, notes):
    code, stdout, stderr = at_terminal("ingest", str(notes))
    assert code == 0
    steps = ["Looking for files", "Opening the knowledge base", "Taking in: 0 of 3 files", "Indexing: "]
    places = [stderr.find(step) for step in steps]
    assert -1 not in places, (steps, places, stderr)
    assert places == sorted(places)
    assert "\x1b" not in stdout
    assert "3 indexed" in stdout


def test_the_worker_shows_how_much_is_left(at_terminal, notes):
    assert at_terminal("ingest", "--no-wait", str(notes), terminal="stdout")[0] == 0
    code, stdout, stderr = at_terminal("worker", "--until-idle")
    assert code == 0
    assert " of 3 tasks" in stderr
    assert stdout == "3 done, 0 retried, 0 buried\n"


@pytest.mark.parametrize("arguments", [("ingest",), ("sync",)])
def test_with_json_nothing_but_the_document_is_shown(at_terminal, notes, arguments):
    code, stdout, stderr = at_terminal(*arguments, str(notes), "--json")
    assert (code, stderr) == (0, "")
    assert json.loads(stdout)["counts"] == {"indexed": 3}
    code, stdout, stderr = at_terminal("worker", "--until-idle", "--json")
    assert (code, stdout, stderr) == (0, "", "")


def test_pipes_get_neither_progress_nor_broken_lines(at_terminal, notes):
    (notes / "long.md").write_text("The harbour lamp of Alnwick " + "was lit by water power, which " * 8 + "was new.")
    code, _, stderr = at_terminal("ingest", str(notes), terminal=None)
    assert (code, stderr) == (0, "")
    _, piped, _ = at_terminal("query", "What lit the harbour lamp?")
    (preview,) = [line for line in piped.splitlines() if "harbour lamp" in line]
    assert len(preview) > WIDTH
    _, shown, _ = at_terminal("query", "What lit the harbour lamp?", terminal="stdout")
    lines = [line for line in shown.splitlines() if "water power" in line]
    assert len(lines) > 1
    assert all(len(line) <= WIDTH and line.startswith("      ") for line in lines)
    assert " ".join(preview.split()) in " ".join(shown.split()), "and no word is lost"


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("one two three four", ["one two", "three four"]),
        ("one\n\n  two three four", ["one", "", "  two", "  three", "  four"]),
        ("see https://example.org/a/long/address now", ["see", "https://example.org/a/long/address", "now"]),
        ("one two   \nthree", ["one two", "three"]),
        ("灯台は夜に光る", ["灯台は夜に", "光る"]),
        ("1\xa0000 000\xa0000", ["1\xa0000", "000\xa0000"]),
        ("a\tb", ["a    b"]),
    ],
)
def test_lines_are_broken_at_words_however_the_text_comes(text, lines, size):
    wrap = WordWrap(10)
    shown = "".join(wrap.feed(text[start : start + size]) for start in range(0, len(text), size)) + wrap.end()
    assert shown.split("\n") == lines
