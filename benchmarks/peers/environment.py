"""The isolated environment of the peers, with pinned versions, in the cache folder."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.harness import ROOT, cache_folder

# litellm is installed without its dependencies, because its wheel contains the tables that LightRAG's tokenizer would
# otherwise download at its first use.
LIGHTRAG_VERSION = "1.5.7"
_PINS = (
    f"lightrag-hku[api]=={LIGHTRAG_VERSION}",
    "ollama==0.6.3",
    "langgraph==1.2.22",
    "langchain-ollama==1.1.0",
    "aiohttp==3.14.5",
    "uvloop==0.23.0",
    # The drivers of LightRAG's storages, which it would otherwise install while it runs.
    "asyncpg==0.32.0",
    "neo4j==6.4.1",
    "pgvector==0.5.1",
)
_TABLES = "litellm==1.106.2"


def peer_python() -> Path:
    """The interpreter of the peers' environment, which is made if missing."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    pins = hashlib.sha256(" ".join((*_PINS, _TABLES)).encode()).hexdigest()[:12]
    folder = cache_folder() / f"peers-lightrag-{LIGHTRAG_VERSION}-py{version}-{pins}"
    python = folder / "bin" / "python"
    ready = folder / "ready"
    if not ready.exists():
        print(f"setting up the peers' environment in {folder} (once) ...", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        _install(folder, python)
        ready.touch()
    return python


def tokenizer_tables(python: Path) -> Path:
    """The folder of tokenizer tables inside the peers' environment."""
    return next(python.parents[1].glob("lib/*/site-packages/litellm/litellm_core_utils/tokenizers"))


def _install(folder: Path, python: Path) -> None:
    uv = shutil.which("uv") or next((str(path) for path in [ROOT / ".uv" / "bin" / "uv"] if path.exists()), None)
    if uv:
        subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(folder)], check=True)
        install = [uv, "pip", "install", "-q", "--python", str(python)]
    else:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "-q"]
    subprocess.run([*install, *_PINS], check=True)
    subprocess.run([*install, "--no-deps", _TABLES], check=True)
