"""The blocks of the tutorial and of the how-to pages work when they are pasted into a fresh shell."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.services.tools import free_port

DOCS = Path(__file__).parents[2] / "docs"
GUIDES = [DOCS / "tutorial.md", *sorted((DOCS / "how-to").glob("*.md"))]
# What each page has to have shown at its end.
PRINTED = {
    "tutorial": ("Ada Grant keeps the lighthouse", "due in March", "does not run on Sundays", "none of it above 0.6"),
    "several-users": ("boat.md", "ada", "refused the token"),
    "backup-and-restore": ("The lamp is lit at nine.", "User: Which port does Redis have?"),
    "move": ("The lamp is lit at nine.", "moved"),
    "upgrade": ("cragside ",),
    "troubleshooting": ("pending",),
}


def script_of(page: Path) -> str:
    """The blocks of a page that are meant to be run: those marked `sh`. What is marked `console` is only shown."""
    return "\n".join(re.findall(r"```sh\n(.*?)```", page.read_text(), re.DOTALL))


def commands_in(script: str) -> int:
    return sum(line.lstrip("! ").startswith(("cragside ", "curl ")) for line in script.splitlines())


@pytest.mark.guides
@pytest.mark.enable_socket
@pytest.mark.parametrize("page", [page for page in GUIDES if script_of(page)], ids=lambda page: page.stem)
def test_the_blocks_of_a_guide_run_in_a_fresh_shell(page: Path, tmp_path: Path) -> None:
    script = script_of(page).replace("8642", str(free_port()))
    (tmp_path / "home").mkdir()
    (tmp_path / "here").mkdir()
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
        "OLLAMA_HOST": f"127.0.0.1:{free_port()}",
    }
    ran = subprocess.run(
        ["bash", "-e", "-m", "-c", script],
        cwd=tmp_path / "here",
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for text in PRINTED[page.stem]:
        assert text in ran.stdout + ran.stderr


def test_the_guides_have_forty_steps() -> None:
    assert sum(commands_in(script_of(page)) for page in GUIDES) >= 40


def test_every_guide_whose_blocks_run_says_what_they_print() -> None:
    assert {page.stem for page in GUIDES if script_of(page)} == set(PRINTED)
