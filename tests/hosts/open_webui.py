"""Open WebUI's whole server, with the filter of docs/plugins.md within its reach.

Its environment takes a gigabyte, so that it is tried only where `OPEN_WEBUI` names a folder for it. `open_webui.txt`
pins what it starts with. That leaves out PyTorch and what is built on it: models of its own for embeddings and speech.
"""

import os
import re
from pathlib import Path

from tests.services import tools
from tests.services.server import Server

VARIABLE = "OPEN_WEBUI"
_PINNED = (Path(__file__).parent / "open_webui.txt").read_text().split()
_SOURCES = Path(__file__).parents[2] / "layers/core/python"
FILTER = _SOURCES / "cragside/plugins/open_webui_filter.py"
VERSION = next(line for line in _PINNED if re.match("open-webui==", line)).replace("==", " ")


class OpenWebUi(Server):
    """It has one user, who need not sign in, and finds its models at an address. Raises `Unavailable`."""

    start_seconds = 300.0  # it imports for 30 seconds where nothing else runs

    def __init__(self, models: str) -> None:
        self._python = tools.environment(Path(os.environ[VARIABLE]), ("--no-deps", *_PINNED))
        self._models = models
        super().__init__("open-webui", "/health")

    def version(self) -> str:
        """Its version."""
        return VERSION

    def command(self) -> list[str]:
        """The program as its documentation starts it."""
        listen = ["--host", "127.0.0.1", "--port", str(self.port)]
        return [str(self._python.with_name("open-webui")), "serve", *listen]

    def environment(self) -> dict[str, str]:
        """A folder of its own, the address of its models, and nothing that it would fetch."""
        offline = {"OFFLINE_MODE": "True", "HF_HUB_OFFLINE": "1", "ANONYMIZED_TELEMETRY": "False", "DO_NOT_TRACK": "1"}
        # Else it would load models for these.
        others = {"RAG_EMBEDDING_ENGINE": "ollama", "AUDIO_STT_ENGINE": "openai", "ENABLE_OPENAI_API": "False"}
        own = {"HOME": str(self.home), "DATA_DIR": str(self.home / "data"), "WEBUI_SECRET_KEY": "of the tests"}
        own |= {"WEBUI_AUTH": "False", "OLLAMA_BASE_URL": self._models, "PYTHONPATH": str(_SOURCES)}
        return super().environment() | offline | others | own
