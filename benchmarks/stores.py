"""Embedded stores of synthetic passages, built by cragside's own indexing and kept in the cache folder.

A store is rebuilt when the texts, the settings or the indexing code changed.
"""

import argparse
import asyncio
import hashlib
import shutil
import subprocess
import time
from pathlib import Path

import cragside
from benchmarks import corpus
from benchmarks.harness import OWN_PYTHON, ROOT, cache_folder, environment
from cragside.bootstrap import Container
from cragside.settings import load_settings

PASSAGES_A_DOCUMENT = 10
# Every passage of the corpus is longer than half of this and shorter than all of it: one passage, one chunk.
CHUNKING = {"RAG_CHUNK_TOKENS": "450", "RAG_CHUNK_OVERLAP_TOKENS": "0"}
_BATCH = 50


def store(passages: int, *, each: int = PASSAGES_A_DOCUMENT) -> Path:
    """`RAG_HOME` of a store with that many passages; the first call builds it, in a separate process.

    `each` is the number of passages in a document.
    """
    home = cache_folder() / f"store-{passages}-{_key(each)}"
    if not (home / "ready").exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        print(f"building a store of {passages:,} passages in {home} (once) ...", flush=True)
        began = time.monotonic()
        command = [OWN_PYTHON, "-m", "benchmarks.stores", str(passages), str(each)]
        subprocess.run(command, env=environment(RAG_HOME=str(home), **CHUNKING), cwd=ROOT, check=True)
        print(f"built in {time.monotonic() - began:.0f} s", flush=True)
        (home / "ready").touch()
    return home


def _key(each: int) -> str:
    digest = hashlib.sha256(f"{corpus.VERSION} {cragside.__version__} {each} {CHUNKING}".encode())
    package = Path(cragside.__file__).parent
    for folder in ("adapters/embedded", "store"):
        for file in sorted((package / folder).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


async def _build(passages: int, each: int) -> None:
    container = Container(load_settings())
    try:
        texts = corpus.documents(corpus.passages(passages), each=each)
        for start in range(0, len(texts), _BATCH):
            await corpus.index(container, texts[start : start + _BATCH])
            print(f"\r{min(start + _BATCH, len(texts)):,} of {len(texts):,} documents", end="", flush=True)
        print()
        status = await (await container.workspaces.open("default")).passages.status()
        print(f"{status.passages:,} passages, {status.entities:,} entities, {status.relations:,} relations")
        if status.passages != passages:
            raise SystemExit(f"The store has {status.passages:,} passages instead of {passages:,}.")
    finally:
        await container.close()


def main() -> None:
    """Build the store of `RAG_HOME`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("passages", type=int)
    parser.add_argument("each", type=int)
    arguments = parser.parse_args()
    asyncio.run(_build(arguments.passages, arguments.each))


if __name__ == "__main__":
    main()
