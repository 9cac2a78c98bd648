"""The wheel installs without the clone, and the installed program does the main job."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.services.tools import free_port
from tools import toolchain

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.install


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program as `uv tool install` installs it, in folders of its own."""
    home, uv = tmp_path_factory.mktemp("install"), toolchain.uv()
    assert uv, "uv was not found; `make check` installs it"
    wheels = home / "dist"
    subprocess.run([uv, "build", "-q", "--wheel", "--python", sys.executable, "-o", wheels, ROOT], check=True)
    (wheel,) = wheels.glob("cragside-*.whl")
    folders = {"UV_TOOL_DIR": str(home / "tools"), "UV_TOOL_BIN_DIR": str(home / "bin")}
    install = [uv, "tool", "install", "-q", "--python", sys.executable, str(wheel)]
    subprocess.run(install, env={**os.environ, **folders}, cwd=home, check=True)
    return home / "bin" / "cragside"


def run(program: Path, home: Path, *arguments: str) -> str:
    """Run a command with an empty home folder and no other variables, and return its output."""
    environment = {"HOME": str(home), "PATH": os.defpath, "OLLAMA_HOST": f"127.0.0.1:{free_port()}"}
    ran = subprocess.run([program, *arguments], env=environment, cwd=home, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_installed_program_answers_from_notes(program: Path, tmp_path: Path) -> None:
    assert run(program, tmp_path, "--version").startswith("cragside ")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/cragside.md").write_text("# Cragside\nJoseph Swan lit Cragside with his lamps in 1880.")
    assert "1 indexed" in run(program, tmp_path, "ingest", "notes")
    assert "cragside.md" in run(program, tmp_path, "query", "Who lit Cragside?")
    assert "Joseph Swan lit" in run(program, tmp_path, "enrich", "/rag Who lit Cragside?")
    assert "[1] # Cragside" in run(program, tmp_path, "ask", "Who lit Cragside?")
    assert "Verdict" in run(program, tmp_path, "demo")
    assert (tmp_path / ".cragside").is_dir()


def test_the_installed_service_answers(program: Path, tmp_path: Path) -> None:
    port = free_port()
    environment = {"HOME": str(tmp_path), "PATH": os.defpath}
    service = subprocess.Popen([program, "serve", "--port", str(port)], env=environment, cwd=tmp_path)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
                    assert answer.status == 200
                    break
            except OSError:
                assert service.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/enrich",
            data=json.dumps({"prompt": "/rag Who lit Cragside?"}).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            context = json.load(answer)["metadata"]["rag_context"]
        # Nothing has been indexed and there is no web search.
        assert (context["verdict"], context["documents"]) == ("none", [])
    finally:
        service.terminate()
        assert service.wait(30) == 0
