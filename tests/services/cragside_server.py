"""cragside as users run it: a real `cragside serve` on a free loopback port."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import httpx

from tests.services import forks, tools
from tests.services.server import Server
from tests.services.tools import Unavailable

_PROGRAM = (sys.executable, "-c", "from cragside.entrypoints.cli.main import main; main()")
# An address where nobody listens.
NOBODY = "127.0.0.1:9"
_INDEXING_SECONDS = 120.0


@dataclass(frozen=True)
class Given:
    """Return the arguments and the environment of a service."""

    token: str = ""
    # Texts by name, searchable before the test begins.
    documents: Mapping[str, str] = field(default_factory=dict)
    # Whether the texts are in a read-only store.
    baked: bool = False
    # What the proxy passes requests on to: nobody, the scripted one, or the real one (mark such a test `real_ollama`).
    ollama: Literal["none", "stub", "real"] = "none"
    environment: Mapping[str, str] = field(default_factory=dict)


class CragsideServer(Server):
    """One with an empty store, unless texts are given. It can be paused, stopped, killed and started again."""

    def __init__(self, given: Given | None = None, *, ollama: str = NOBODY) -> None:
        super().__init__("cragside", "/healthz")
        self.given = given or Given()
        self._ollama = ollama
        self._filled = False

    @property
    def store(self) -> Path:
        """Its RAG_HOME."""
        return self.home / "store"

    def console(self, route: str = "") -> str:
        """The address of a page of the console, such as `#/ask`."""
        return f"{self.url}/console/{route}"

    def client(self) -> httpx.Client:
        """A client with the token."""
        headers = {"X-API-Key": self.given.token} if self.given.token else {}
        return httpx.Client(base_url=self.url, headers=headers, trust_env=False, timeout=60)

    def add(self, documents: Mapping[str, str]) -> None:
        """Index texts by name, and wait until they are searchable."""
        with self.client() as client:
            for name, text in documents.items():
                client.post("/v1/documents", json={"name": name, "text": text}).raise_for_status()
            deadline = time.monotonic() + _INDEXING_SECONDS
            while waiting := client.get("/v1/documents", params={"status": "pending"}).json()["total"]:
                if time.monotonic() > deadline:
                    raise Unavailable(f"{waiting} documents are not indexed: {self.log[-400:]}")
                time.sleep(0.05)

    def version(self) -> str:
        """Return name and version as the server tells them."""
        return tools.run([*_PROGRAM, "--version"], env=self.environment(), inherit=False).strip()

    def start(self) -> None:
        """Start it; the first time with its texts."""
        if self.given.baked and not self._filled:
            self._bake()
        super().start()
        if not (self.given.baked or self._filled):
            self.add(self.given.documents)
        self._filled = True

    def command(self) -> list[str]:
        """The program as the installed command starts it."""
        return [*_PROGRAM, *self._arguments()]

    def environment(self) -> dict[str, str]:
        """Nothing of the user's but where programs are."""
        token = {"RAG_API_TOKEN": self.given.token} if self.given.token else {}
        return {
            **super().environment(),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "PYTHONUNBUFFERED": "1",
            "HOME": str(self.home),
            "RAG_HOME": str(self.store),
            "OLLAMA_HOST": self._ollama,
            **token,
            **self.given.environment,
        }

    def _arguments(self) -> list[str]:
        return ["serve", "--host", "127.0.0.1", "--port", str(self.port)]

    def _bake(self) -> None:
        texts = self.home / "texts"
        texts.mkdir()
        for name, text in self.given.documents.items():
            (texts / name).write_text(text)
        command = [*_PROGRAM, "bake", str(texts), "--out", str(self.store)]
        environment = self.environment()
        del environment["RAG_HOME"]
        tools.run(command, env=environment, inherit=False, cwd=self.home)


class ForkedServer(CragsideServer):
    """One that starts from a process in which all is loaded, for the many tests that need a service of their own."""

    def _begun(self) -> subprocess.Popen[bytes] | forks.Forked:
        log = self.home / "log"
        log.write_bytes(b"")
        return forks.fork(self._arguments(), self.environment(), log)
