"""Serve the local engine of Qdrant's client by HTTP, on a free loopback port.

No package registry has Qdrant's server. This is not it: requests have Qdrant's form, and the engine is the one that its
makers ship for tests. It searches without an index, and takes one request at a time.
"""

import json
import sys
import urllib.request
from importlib.metadata import version
from pathlib import Path

from tests.services.server import Server
from tests.services.tools import Unavailable

_ROOT = Path(__file__).parents[2]


class QdrantStandIn(Server):
    """One whose data are gone after a restart. Raises `Unavailable` from `start`."""

    def __init__(self, key: str = "") -> None:
        super().__init__("qdrant", "/healthz")
        self.exchange(key)

    def exchange(self, key: str) -> None:
        """Accept this key alone from now on; all requests if it is empty."""
        (self.home / "key").write_text(key)

    def version(self) -> str:
        """Describe the server."""
        return f"NOT Qdrant's server, which no registry has: the engine in its client {version('qdrant-client')}"

    def command(self) -> list[str]:
        """The program, with its data in memory."""
        return [sys.executable, "-m", "tests.services.qdrant_stand_in", str(self.port), ":memory:"]

    def environment(self) -> dict[str, str]:
        """Return the environment: the path of its modules, and its key."""
        return super().environment() | {"PYTHONPATH": str(_ROOT), "KEY": str(self.home / "key")}


def version_of(url: str) -> str:
    """Return name and version as a server tells them. Raises `Unavailable` if it does not answer."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return f"Qdrant {json.load(answer)['version']}"
    except (OSError, ValueError, KeyError) as error:
        raise Unavailable(f"Qdrant did not answer: {type(error).__name__}") from error


class LastingStandIn(QdrantStandIn):
    """One that keeps its data through a crash."""

    def command(self) -> list[str]:
        """The program, with its data in its folder."""
        *program, _ = super().command()
        return [*program, str(self.home / "data")]
