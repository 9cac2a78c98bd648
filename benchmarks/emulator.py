"""Lambda's runtime interface emulator, from the wheel of aws-sam-cli, with Lambda's own runtime client.

Both come from an isolated environment with pinned versions in the cache folder. The replacement of `/opt` is on
`PYTHONPATH`. Writing bytecode is disabled, because `/opt` and `/var/task` are read-only on Lambda.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import cache_folder, environment, free_port, process
from tools import toolchain

_RUNTIME = ("awslambdaric==4.2.2", "boto3==1.44.5")
_EMULATOR = "aws-sam-cli==1.170.0"  # installed without its dependencies for the binary inside
_INIT = re.compile(r"INIT REPORT\(durationMs: ([0-9.]+)\)")
_INVOKE = "2015-03-31/functions/function/invocations"


def uv() -> str:
    """The path of uv, as installed by `make` or the user."""
    found = toolchain.uv()
    if found is None:
        raise SystemExit("uv is not installed: run `make bench`, which installs it.")
    return found


def version_here() -> str:
    """The function's Python version, 3.12, if installed, else the nearest installed one."""
    return next((version for version in ("3.12", "3.13", "3.11") if toolchain.interpreter(version)), "3.12")


@dataclass(frozen=True)
class Runtime:
    """An environment with the runtime client and boto3, as in Lambda's runtime, and the emulator's binary."""

    python: Path
    emulator: Path


def runtime(version: str) -> Runtime:
    """The environment of a minor version; the first call sets it up."""
    folder = cache_folder() / f"lambda-{version}-{'-'.join([*_RUNTIME, _EMULATOR])}".replace("==", "-")
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"setting up Lambda's runtime and its emulator in {folder} (once) ...", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        base = toolchain.interpreter(version)
        if base is None:
            raise SystemExit(f"There is no Python {version} here; Pass another version with --python.")
        subprocess.run([uv(), "venv", "-q", "--python", base, str(folder)], check=True)
        install = [uv(), "pip", "install", "-q", "--compile-bytecode", "--python", str(python)]
        subprocess.run([*install, *_RUNTIME], check=True)
        subprocess.run([*install, "--no-deps", _EMULATOR], check=True)
        (folder / "ready").touch()
    machine = "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"
    emulator = next(folder.glob(f"lib/*/site-packages/samcli/local/rapid/aws-lambda-rie-{machine}"))
    emulator.chmod(0o755)
    return Runtime(python, emulator)


def lambda_environment(task: Path, opt: Sequence[Path], **variables: str) -> dict[str, str]:
    """The environment variables of a handler in `task` with layers in `opt`."""
    fake = {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none", "AWS_REGION": "eu-central-1"}
    fake["AWS_DEFAULT_REGION"] = fake["AWS_REGION"]
    return environment(
        **fake,
        **variables,
        LAMBDA_TASK_ROOT=str(task),
        PYTHONPATH=os.pathsep.join(map(str, [task, *opt])),
        PYTHONDONTWRITEBYTECODE="1",
        AWS_LAMBDA_FUNCTION_NAME="enrich",
        AWS_LAMBDA_FUNCTION_MEMORY_SIZE="1024",
        AWS_LAMBDA_FUNCTION_TIMEOUT="60",
    )


class Emulated:
    """A function under the emulator. INIT happens with the first invocation."""

    def __init__(self, address: str, log: Path, pid: int) -> None:
        self.pid = pid
        self._address = address
        self._log = log

    def invoke(self, event: Any) -> tuple[Any, float]:
        """The handler's answer, and the duration of the invocation in ms as its client sees it."""
        request = urllib.request.Request(f"{self._address}/{_INVOKE}", data=json.dumps(event).encode())
        began = time.perf_counter()
        with urllib.request.urlopen(request, timeout=120) as response:
            answer = json.load(response)
        return answer, (time.perf_counter() - began) * 1000

    def init_ms(self) -> float:
        """The duration of INIT that the emulator reports."""
        reported = _INIT.findall(self._log.read_text())
        if not reported:
            raise SystemExit(f"The emulator reports no INIT:\n{self._log.read_text()[-3000:]}")
        return float(reported[0])


@contextmanager
def emulated(at: Runtime, env: dict[str, str], log: Path) -> Iterator[Emulated]:
    """A function `handler.handler` under the emulator, running while the block is open."""
    port, api = free_port(), free_port()
    command = [
        str(at.emulator),
        *("--runtime-interface-emulator-address", f"127.0.0.1:{port}"),
        *("--runtime-api-address", f"127.0.0.1:{api}"),
        *(str(at.python), "-m", "awslambdaric", "handler.handler"),
    ]
    with process(command, env=env, log=log) as child:
        address = f"http://127.0.0.1:{port}"
        _wait(address, child, log)
        yield Emulated(address, log, child.pid)


def _wait(address: str, child: "subprocess.Popen[str]", log: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and child.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=2):
                return
        except urllib.error.HTTPError:  # it listens, but knows only one path
            return
        except OSError:
            time.sleep(0.02)
    raise SystemExit(f"The emulator did not come up:\n{log.read_text()[-3000:]}")
