"""The real toxiproxy, built from source: a proxy for TCP that can harm what passes.

    python -m tests.services.toxiproxy        # prints the address of its API, serves until interrupted

It needs Go. The first build takes about a minute and lands in the cache folder.
"""

import secrets
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from tests.services import tools
from tests.services.server import Server
from tests.services.tools import Unavailable

VERSION = "2.12.0"
_MODULE = "github.com/Shopify/toxiproxy/v2"


class ToxiproxyServer(Server):
    """A server without proxies. Raises `Unavailable` from `start`."""

    def __init__(self) -> None:
        super().__init__("toxiproxy", "/version")

    def version(self) -> str:
        """The version that was built."""
        return f"toxiproxy {VERSION}"

    def command(self) -> list[str]:
        """The program, built at the first call."""
        folder = tools.cache(f"toxiproxy-{VERSION}")
        binary = folder / "server"
        with tools.exclusive(folder):
            if not binary.exists():
                _build(folder)
        return [str(binary), "-host", "127.0.0.1", "-port", str(self.port)]


class Proxy:
    """A way from a port of its own to a port on loopback, until `remove`."""

    def __init__(self, api: str, port: int) -> None:
        self._http = httpx.Client(base_url=api, trust_env=False, timeout=30)
        self._target = f"127.0.0.1:{port}"
        self.refusals = 0  # how often it was told to refuse
        self._name = f"proxy-{secrets.token_hex(4)}"
        made = {"name": self._name, "listen": "127.0.0.1:0", "upstream": self._target, "enabled": True}
        self.port = int(self._ask("POST", "", made)["listen"].rpartition(":")[2])

    def accept(self, whether: bool) -> None:
        """Take connections, or refuse them and end those that are there."""
        self._ask("PATCH", f"/{self._name}", {"enabled": whether})
        self.refusals += not whether

    def harm(self, kind: str, stream: str = "downstream", **attributes: int) -> None:
        """Add one of toxiproxy's toxics. The stream from the server to its client is `downstream`."""
        toxic = {"type": kind, "stream": stream, "attributes": attributes}
        self._ask("POST", f"/{self._name}/toxics", toxic)

    def lead_to(self, port: int) -> None:
        """End all connections, and lead further ones to another port."""
        self._ask("PATCH", f"/{self._name}", {"upstream": f"127.0.0.1:{port}"})

    def heal(self) -> None:
        """Undo everything."""
        for toxic in self._ask("GET", f"/{self._name}/toxics"):
            self._ask("DELETE", f"/{self._name}/toxics/{toxic['name']}")
        self._ask("PATCH", f"/{self._name}", {"upstream": self._target, "enabled": True})

    def remove(self) -> None:
        """End it."""
        self._ask("DELETE", f"/{self._name}")
        self._http.close()

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = self._http.request(method, f"/proxies{path}", json=body)
        answer.raise_for_status()
        return answer.json() if answer.content else None


class Toxiproxy:
    """A running server."""

    def __init__(self, api: str) -> None:
        self._api = api

    @contextmanager
    def proxy(self, port: int) -> Iterator[Proxy]:
        """A proxy in front of a port on loopback."""
        proxy = Proxy(self._api, port)
        try:
            yield proxy
        finally:
            proxy.remove()


def _build(folder: Path) -> None:
    if shutil.which("go") is None:
        raise Unavailable("building toxiproxy needs a Go toolchain (go is not on the path)")
    tools.run(
        ["go", "install", "-trimpath", f"{_MODULE}/cmd/server@v{VERSION}"], env={"GOBIN": str(folder)}, cwd=folder
    )


def main() -> None:
    """Serve until interrupted."""
    with ToxiproxyServer() as running, suppress(KeyboardInterrupt):
        print(running.url, flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
