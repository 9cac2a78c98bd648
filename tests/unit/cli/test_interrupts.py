"""Ctrl-C as a terminal sends it: to the whole process group of a command."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.programs import CRAGSIDE

pytestmark = [pytest.mark.slow, pytest.mark.interpreter]

Ready = Callable[[Path], bool]


def _taking_in(place: Path) -> bool:
    return (place / "home/default/store.sqlite3").exists()


def _says(text: str) -> Ready:
    return lambda place: text in (place / "out").read_text() + (place / "err").read_text()


COMMANDS: dict[str, tuple[list[str], Ready, int]] = {
    "sync --watch": (["sync", "notes", "--watch", "--no-enrich"], _says("Following "), 0),
    "serve": (["serve", "--port", "0"], _says("http://127.0.0.1:"), 0),
    "ingest": (["ingest", "notes"], _taking_in, 130),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_ends_a_command_without_a_stack_trace(tmp_path, command):
    arguments, ready, code = COMMANDS[command]
    (tmp_path / "notes").mkdir()
    for number in range(300 if command == "ingest" else 0):
        (tmp_path / "notes" / f"{number}.md").write_text(
            f"# Note {number}\n\nNote {number} is about topic {number * 7}."
        )
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
        run = subprocess.Popen(
            [*CRAGSIDE, *arguments],
            cwd=tmp_path,
            env={
                "PYTHONPATH": os.pathsep.join(sys.path),
                "RAG_HOME": str(tmp_path / "home"),
                "PYTHONUNBUFFERED": "1",
                "PYTHONFAULTHANDLER": "1",
            },
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
            # A shell has what it starts in the background ignore the signal, and children inherit that.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )
        try:
            while run.poll() is None and not ready(tmp_path):
                time.sleep(0.02)
            os.killpg(run.pid, signal.SIGINT)
            ended = run.wait(60)
        finally:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)
                run.wait()
    told = (tmp_path / "out").read_text() + (tmp_path / "err").read_text()
    assert ended == code, told
    assert "Traceback" not in told
