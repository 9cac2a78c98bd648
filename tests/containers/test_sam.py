"""`sam local start-api` with the function's real layers, merged into a true /opt. `make sam-e2e` shows what happens."""

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infra.smoke import QUESTION
from tests.compose import ROOT
from tests.containers.engine import Engine, Failed
from tests.containers.images import Images
from tests.containers.report import say
from tests.services import npm, tools
from tests.services.requirement import stay_down
from tests.services.tools import Unavailable
from tools import toolchain

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1200)]

PYTHON = "3.13"  # Debian's
SAM = "aws-sam-cli==1.170.0"
BASE = f"public.ecr.aws/lambda/python:{PYTHON}-x86_64"
ADDRESS, PORT = "http://127.0.0.1:3010", 3010
_SECONDS = 300.0


@dataclass(frozen=True)
class Served:
    """The function behind its API, and its token."""

    engine: Engine
    token: str

    def ask(self, prompt: str, token: str | None) -> tuple[int, dict[str, Any]]:
        """An answer of /v1/enrich."""
        headers = {"X-API-Key": token} if token else {}
        answer = self.engine.ask("POST", f"{ADDRESS}/v1/enrich", {"prompt": prompt}, headers)
        return answer.status, json.loads(answer.text)


@pytest.fixture(scope="module")
def served(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """dev's baked store, served in containers without a way out."""
    folder, token = tmp_path_factory.mktemp("sam"), secrets.token_hex(24)
    try:
        sam = _prepared(engine, folder, token)
    except (Unavailable, Failed) as reason:
        say(f"NOT RUN: sam local was not started: {reason}")
        stay_down(f"sam local could not be had: {reason}", os.environ, "CONTAINERS")
    enter, environment = engine.entering()
    arguments = (folder / "out/arguments").read_text().split()
    begin = ["local", "start-api", *arguments, "--port", str(PORT), "--skip-pull-image", "--warm-containers", "LAZY"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*enter, *sam, *begin],
            cwd=folder / "out",
            env={**os.environ, **environment, **_nobody(folder)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait(engine, process, folder / "log")
        yield Served(engine, token)
    finally:
        process.terminate()
        process.wait(60)


def _prepared(engine: Engine, folder: Path, token: str) -> list[str]:
    """The command of SAM, with its image, template and settings in place."""
    began = time.monotonic()
    uv = toolchain.uv()
    if uv is None:
        raise Unavailable("uv is not installed: `make sam-e2e` installs it")
    environment = {**os.environ, "PATH": os.pathsep.join([str(npm.BESIDE_PYTHON), os.environ["PATH"]])}
    context = ["-c", "env=dev", "-c", f"python={PYTHON}"]
    tools.run(["make", "--no-print-directory", "synth", f"ARGS=-c python={PYTHON}"], cwd=ROOT, env=environment)
    (folder / ".env").write_text(f"CRAGSIDE_API_TOKEN={token}\n")
    local = [sys.executable, "-m", "infra.local", "build/cdk/dev", "--out", str(folder / "out")]
    tools.run([*local, "--env-file", str(folder / ".env")], cwd=ROOT)
    engine.docker("tag", Images(engine).lambda_runtime(), BASE)
    say(f"layers, template and image for {' '.join(context)}: {time.monotonic() - began:.0f} s")
    return [uv, "tool", "run", "--python", sys.executable, "--from", SAM, "sam"]


def _nobody(folder: Path) -> dict[str, str]:
    """No AWS configuration of the user's, and no telemetry."""
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    return {
        **dict.fromkeys(names, "nobody"),
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_CONFIG_FILE": str(folder / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "none"),
        "SAM_CLI_TELEMETRY": "0",
        "__SAM_CLI_APP_DIR": str(folder / "sam"),
    }


def _wait(engine: Engine, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if f"0100007F:{PORT:04X}" in engine.listening():
            return
        time.sleep(0.5)
    pytest.fail(f"sam local did not come up: {log.read_text()[-1500:]}")


def test_a_question_is_answered_with_citations(served: Served) -> None:
    status, answer = served.ask(f"/rag {QUESTION}", served.token)
    assert status == 200, answer
    found = answer["metadata"]["rag_context"]
    say(f"POST /v1/enrich {QUESTION!r}: {status}, {found['verdict']}, {found['documents'][0]['title']}")
    assert (found["verdict"], found["degraded"]) == ("local", [])
    assert "[1] Mercury, the innermost planet" in answer["prompt"]


@pytest.mark.parametrize("token", [None, "wrong"])
def test_without_the_token_there_is_no_answer(served: Served, token: str | None) -> None:
    status, answer = served.ask(f"/rag {QUESTION}", token)
    assert (status, answer["error"]["type"]) == (401, "unauthorized")


def test_the_layers_are_merged_into_opt(served: Served) -> None:
    (running, *_) = served.engine.docker("ps", "--quiet").split()
    for path in ("/opt/python/cragside", "/opt/python/lightrag", "/opt/knowledge/baked.json", "/var/task/handler.py"):
        served.engine.docker("exec", running, "test", "-e", path)
    say("/opt holds core, LightRAG and the baked store")
