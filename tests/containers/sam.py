"""`sam local start-api` in the engine's network, with the function's real layers."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.compose import ROOT
from tests.containers.engine import Engine
from tests.containers.images import Images
from tests.containers.report import say
from tests.services import npm, tools
from tests.services.tools import Unavailable
from tools import toolchain

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


def prepare(engine: Engine, folder: Path, given: Path, context: Sequence[str] = ()) -> list[str]:
    """SAM's command, with image, template and settings in place. `given` has passwords. Raises `Unavailable`."""
    began = time.monotonic()
    uv = toolchain.uv()
    if uv is None:
        raise Unavailable("uv is not installed: `make sam-e2e` installs it")
    environment = {**os.environ, "PATH": os.pathsep.join([str(npm.BESIDE_PYTHON), os.environ["PATH"]])}
    said = " ".join(["-c", f"python={PYTHON}", *context])
    tools.run(["make", "--no-print-directory", "synth", f"ARGS={said}"], cwd=ROOT, env=environment)
    local = [sys.executable, "-m", "infra.local", "build/cdk/dev", "--out", str(folder / "out")]
    tools.run([*local, "--env-file", str(given)], cwd=ROOT)
    engine.docker("tag", Images(engine).lambda_runtime(), BASE)
    say(f"layers, template and image for {said}: {time.monotonic() - began:.0f} s")
    return [uv, "tool", "run", "--python", sys.executable, "--from", SAM, "sam"]


@contextmanager
def serving(engine: Engine, folder: Path, sam: Sequence[str]) -> Iterator[None]:
    """Serve what was prepared."""
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
        yield
    finally:
        process.terminate()
        process.wait(60)


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
        time.sleep(0.2)
    raise Unavailable(f"sam local did not come up: {log.read_text()[-1500:]}")
