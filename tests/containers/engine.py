"""A container engine of the test's own: Docker's daemon, in a network that nothing of this machine is in.

The daemon needs root, and the programs of Debian's packages docker.io, iptables, iproute2 and podman. podman builds
images, since the daemon has no way out. Compose comes with Docker, or is built from its Go module.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil
from filelock import FileLock

from tests.services import server, tools
from tests.services.tools import Unavailable

_COMPOSE = "2.40.3"
_NEEDED = {
    "dockerd": "docker.io",
    "docker": "docker.io",
    "iptables": "iptables",
    "ip": "iproute2",
    "podman": "podman",
    "runc": "runc",
    "netavark": "netavark",
    "debootstrap": "debootstrap",
}
# Where Debian has programs that are no commands.
_ELSEWHERE = (Path("/usr/lib/podman"), Path("/usr/libexec/podman"), Path("/usr/sbin"))
_START_SECONDS = 60.0
# Asks from inside the daemon's network, as a program on this machine would ask a published port.
_ASK = """
import json, sys, urllib.error, urllib.request
asked = json.load(sys.stdin)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
body = None if asked["body"] is None else json.dumps(asked["body"]).encode()
request = urllib.request.Request(asked["url"], body, asked["headers"], method=asked["method"])
try:
    with opener.open(request, timeout=asked["seconds"]) as answer:
        print(json.dumps([answer.status, answer.read().decode()]))
except urllib.error.HTTPError as error:
    print(json.dumps([error.code, error.read().decode()]))
except OSError as error:
    print(json.dumps([0, str(error)]))
"""


@dataclass(frozen=True)
class Answer:
    """The status, 0 where nobody answered, and the text."""

    status: int
    text: str


class Failed(Exception):
    """The engine is there, but a command failed; the message is what it said."""


class Engine:
    """A daemon whose images outlive it. Raises `Unavailable` from `start`."""

    def __init__(self) -> None:
        self.home = tools.cache("containers")
        self._socket = self.home / "docker.sock"
        self._process: subprocess.Popen[bytes] | None = None
        self._compose: list[str] = []
        self._alone = FileLock(self.home / "owner")

    def start(self) -> Self:
        """Start it, and wait until it answers. Another run waits for its turn."""
        self._look()
        self._alone.acquire()
        self._compose = _compose(self.home)
        pid = self.home / "daemon.pid"
        _end_survivor(pid, self.home)
        self._socket.unlink(missing_ok=True)
        places = f"--data-root {self.home}/data --exec-root {self.home}/exec --pidfile {pid}"
        daemon = f"exec dockerd --host unix://{self._socket} {places} --bip 172.31.250.1/24"
        with (self.home / "daemon.log").open("wb") as log:
            self._process = subprocess.Popen(
                ["unshare", "--net", "--mount", "sh", "-c", f"ip link set lo up && {daemon}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            if self._socket.exists():
                try:
                    self.docker("version")
                except Failed:
                    pass
                else:
                    return self
            time.sleep(0.2)
        self.stop()
        raise Unavailable(f"dockerd did not come up: {(self.home / 'daemon.log').read_text()[-400:]}")

    def stop(self) -> None:
        """End it in good order, its containers with it."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process = None
        self._alone.release()

    def docker(self, *command: str, seconds: float = 300) -> str:
        """The output of Docker's command line. Raises `Failed`."""
        return self._said(["docker", *command], {}, seconds)

    def compose(self, *command: str, env: Mapping[str, str] | None = None, seconds: float = 600) -> str:
        """The output of Compose. Raises `Failed`."""
        return self._said([*self._compose, *command], env or {}, seconds)

    def load(self, archive: subprocess.Popen[bytes]) -> None:
        """Take an image over from what writes it to its output."""
        load = ["docker", "load", "--quiet"]
        done = subprocess.run(
            load, stdin=archive.stdout, env=os.environ | self._environment(), capture_output=True, check=False
        )
        if archive.wait() or done.returncode:
            raise Unavailable(f"an image could not be loaded: {done.stderr.decode()[-400:]}")

    def ask(
        self,
        method: str,
        url: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        *,
        seconds: float = 120,
    ) -> Answer:
        """A request from inside the daemon's network."""
        content = {"Content-Type": "application/json"} if body is not None else {}
        asked = {"method": method, "url": url, "body": body, "headers": {**content, **(headers or {})}}
        told = self._inside([sys.executable, "-c", _ASK], json.dumps({**asked, "seconds": seconds}))
        return Answer(*json.loads(told))

    def listening(self) -> set[str]:
        """The addresses on which somebody listens inside the daemon's network, in hexadecimal."""
        lines = self._inside(["cat", "/proc/net/tcp", "/proc/net/tcp6"], "").splitlines()
        rows = [line.split() for line in lines]
        return {row[1] for row in rows if len(row) > 3 and row[3] == "0A"}

    def entering(self) -> tuple[list[str], dict[str, str]]:
        """Prefix of a command that runs in the daemon's network, and the environment of its clients."""
        assert self._process is not None
        return ["nsenter", "--target", str(self._process.pid), "--net"], self._environment()

    def _said(self, command: list[str], env: Mapping[str, str], seconds: float) -> str:
        environment = os.environ | self._environment() | dict(env)
        done = subprocess.run(
            command, env=environment, timeout=seconds, capture_output=True, text=True, errors="replace", check=False
        )
        if done.returncode:
            raise Failed(f"{' '.join(command[:4])} ... ({done.returncode}): {(done.stderr + done.stdout)[-1500:]}")
        return done.stdout

    def _inside(self, command: list[str], given: str) -> str:
        enter, _ = self.entering()
        return subprocess.run([*enter, *command], input=given, capture_output=True, text=True, check=True).stdout

    def _environment(self) -> dict[str, str]:
        return {"DOCKER_HOST": f"unix://{self._socket}", "DOCKER_CONFIG": str(self.home / "client")}

    def _look(self) -> None:
        if not sys.platform.startswith("linux") or os.geteuid() != 0:
            raise Unavailable("a container engine of the test's own needs Linux and root")
        missing = {package for program, package in _NEEDED.items() if not _is_there(program)}
        if missing:
            raise Unavailable(f"a container engine needs Debian's packages {', '.join(sorted(missing))}")


def _end_survivor(note: Path, home: Path) -> None:
    """End the daemon of a run that was killed."""
    with suppress(OSError, ValueError, psutil.NoSuchProcess):
        left = psutil.Process(int(note.read_text()))
        if f"{home}/data" in " ".join(left.cmdline()):
            server.end([left, *left.children(recursive=True)])
    note.unlink(missing_ok=True)


def _is_there(program: str) -> bool:
    return bool(shutil.which(program)) or any((folder / program).exists() for folder in _ELSEWHERE)


def _compose(home: Path) -> list[str]:
    """Compose: Docker's own if it is there, else built from its Go module once."""
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0:
        return ["docker", "compose"]
    program = home / f"docker-compose-{_COMPOSE}"
    if not program.exists():
        if not shutil.which("go"):
            raise Unavailable("docker compose is not there, and building it needs Go")
        module = f"github.com/docker/compose/v2@v{_COMPOSE}"
        told = tools.run(["go", "mod", "download", "-json", module], cwd=home)
        sources = home / "compose-sources"
        tools.remove(sources)
        # `go install` refuses a module that replaces others.
        shutil.copytree(json.loads(told[told.index("{") :])["Dir"], sources, copy_function=shutil.copyfile)
        named = f"-s -w -X github.com/docker/compose/v2/internal.Version=v{_COMPOSE}"
        build = ["go", "build", "-trimpath", f"-ldflags={named}", "-o", str(program), "./cmd"]
        tools.run(build, env={"CGO_ENABLED": "0"}, cwd=sources)
        tools.remove(sources)
    return [str(program)]
