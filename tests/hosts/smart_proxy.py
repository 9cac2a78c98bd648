"""ollama-smart-proxy with cragside as its `rag` agent, installed as docs/plugins.md says.

No registry has the program. A checkout of https://github.com/undef16/ollama-smart-proxy is where `SMART_PROXY` says.
"""

import os
import shutil
from pathlib import Path

from tests.hosts import packages
from tests.services.server import Server
from tests.services.tools import Unavailable

REVISION = "a650565"
VARIABLE = "SMART_PROXY"
_SOURCES = Path(__file__).parents[2] / "layers/core/python"
_AGENT = _SOURCES / "cragside/plugins/smart_proxy_agent.py"
_DEFAULT = "http://127.0.0.1:8642"


class SmartProxy(Server):
    """It stands before a model host, and its agent asks the cragside at an address. Raises `Unavailable`."""

    def __init__(self, upstream: str, cragside: str) -> None:
        checkout = os.environ.get(VARIABLE)
        if not checkout:
            raise Unavailable(f"{VARIABLE} is the folder with ollama-smart-proxy at {REVISION}")
        super().__init__("smart-proxy", "/plugins")
        self._program = self.home / "program"
        shutil.copytree(Path(checkout), self._program, ignore=shutil.ignore_patterns(".git"))
        agent = _AGENT.read_text().replace(_DEFAULT, cragside)
        (self._program / "src/plugins/rag/agent.py").write_text(agent)
        self._upstream = upstream

    def version(self) -> str:
        """Its revision."""
        return f"ollama-smart-proxy {REVISION}"

    def command(self) -> list[str]:
        """The program."""
        listen = ["--host", "127.0.0.1", "--port", str(self.port)]
        return [str(packages.python()), "-m", "uvicorn", "main:app", "--app-dir", str(self._program), *listen]

    def environment(self) -> dict[str, str]:
        """Run the proxy for the model host. Its own modules are imported from two folders."""
        host, _, port = self._upstream.rpartition(":")
        path = os.pathsep.join(map(str, (self._program, self._program / "src", _SOURCES)))
        own = {"OLLAMA_PROXY_OLLAMA_HOST": f"http://{host}", "OLLAMA_PROXY_OLLAMA_PORT": port}
        plugins = {"OLLAMA_PROXY_PLUGINS_DIR": str(self._program / "src/plugins")}
        return super().environment() | own | plugins | {"HOME": str(self.home), "PYTHONPATH": path}
