"""The compose file as it is, brought up with images that were made here."""

import json
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests import compose
from tests.containers.engine import Answer, Engine, Failed
from tests.services import ollama

PROJECT = "cragside-test"
API = "http://127.0.0.1:8642"
_SECONDS = 240.0


class Stack:
    """The services of the file. Images alone are replaced, by an overlay."""

    def __init__(self, engine: Engine, images: Mapping[str, str], folder: Path) -> None:
        self.engine = engine
        self.secrets = {name: secrets.token_hex(24) for name in sorted(compose.secrets())}
        self.variables = {
            **compose.example(),
            **self.secrets,
            # The model of the tests is too small to grade. It answers what the proxy passes on.
            "CRAGSIDE_CHAT_MODEL": "embedded",
            "CRAGSIDE_EMBEDDING_MODEL": ollama.EMBEDDING_MODEL,
        }
        self._images = images
        self._overlay = folder / "images.json"  # JSON is YAML
        self._given = folder / "env"
        replaced = {name: {"image": image, "pull_policy": "never"} for name, image in images.items()}
        self._overlay.write_text(json.dumps({"services": replaced}))
        self.write(self.variables)

    def write(self, variables: Mapping[str, str]) -> None:
        """Set the variables that the file gets."""
        self._given.write_text("".join(f"{name}={value}\n" for name, value in variables.items()))

    def compose(self, *command: str, seconds: float = 600) -> str:
        """Compose, with the file, the overlay and the variables."""
        files = ["--file", str(compose.FILE), "--file", str(self._overlay), "--env-file", str(self._given)]
        return self.engine.compose("--project-name", PROJECT, *files, *command, seconds=seconds)

    def up(self) -> None:
        """Start all, and wait until all that stays is healthy."""
        self.compose("up", "--detach", "--no-build", "--wait", "--wait-timeout", "400")

    def down(self, *options: str) -> None:
        """End all."""
        self.compose("down", "--timeout", "20", *options)

    def container(self, service: str) -> dict[str, Any]:
        """Inspect the service's container."""
        name = f"{PROJECT}-{service}-1"
        found: dict[str, Any] = json.loads(self.engine.docker("container", "inspect", name))[0]
        return found

    def execute(self, service: str, *command: str, user: str = "") -> str:
        """The output of a command in the service's container."""
        options = ["--user", user] if user else []
        return self.engine.docker("exec", *options, f"{PROJECT}-{service}-1", *command)

    def fails(self, service: str, *command: str) -> bool:
        """Return True if the command fails in the service's container."""
        try:
            self.execute(service, *command)
        except Failed:
            return True
        return False

    def ask(self, method: str, path: str, body: object = None, token: str | None = None) -> Answer:
        """A request to cragside's published port, with the token unless another one is given."""
        given = self.secrets["CRAGSIDE_API_TOKEN"] if token is None else token
        return self.engine.ask(method, API + path, body, {"X-API-Key": given} if given else {})

    def told(self, method: str, path: str, body: object = None) -> Any:
        """The JSON of an answer that has to be good."""
        answer = self.ask(method, path, body)
        assert answer.status < 300, f"{method} {path}: {answer.status} {answer.text[:400]}"
        return json.loads(answer.text)

    def add(self, name: str, text: str) -> None:
        """Add a document, and wait until the worker has indexed it."""
        self.told("POST", "/v1/documents", {"name": name, "text": text})
        self.until(lambda: not self.told("GET", "/v1/documents?status=pending")["total"], f"{name} is indexed")

    def evidence(self, question: str) -> dict[str, Any]:
        """Return the evidence that /rag finds for the question."""
        found: dict[str, Any] = self.told("POST", "/v1/enrich", {"prompt": f"/rag {question}"})
        return dict(found["metadata"]["rag_context"])

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for something that comes about in a while."""
        deadline = time.monotonic() + _SECONDS
        while not holds():
            assert time.monotonic() < deadline, f"not within {_SECONDS:g} s: {what}. {self.logs()}"
            time.sleep(0.2)

    def is_healthy(self, service: str) -> bool:
        """Return True if the engine calls the service healthy."""
        state = self.container(service)["State"]
        return bool(state["Running"] and state.get("Health", {}).get("Status") == "healthy")

    def logs(self, *services: str) -> str:
        """The end of what the services wrote."""
        return self.compose("logs", "--no-color", "--tail", "15", *services)[-4000:]

    def events(self, since: float) -> list[tuple[str, str]]:
        """Service and event, in order: `start`, `die`, `health_status: healthy`, ..."""
        asked = ["events", "--since", f"{since:.0f}", "--until", f"{time.time() + 1:.0f}", "--format", "{{json .}}"]
        told = self.engine.docker(
            *asked, "--filter", "type=container", "--filter", f"label=com.docker.compose.project={PROJECT}"
        )
        rows = [json.loads(line) for line in told.splitlines()]
        return [
            (row["Actor"]["Attributes"]["com.docker.compose.service"], row["Action"]) for row in rows if "Action" in row
        ]
