"""Tests that freed memory goes back to the system, and that preloading leaves nothing to import."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cragside.composition import heaps

GLIBC = heaps._glibc() is not None
# Freeing a large block makes glibc put the next ones into its heap, where the last one keeps the others' memory.
FREED_MB = """
import ctypes, sys
from cragside.composition.heaps import keep_heaps_small
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20
if sys.argv[1] == "small":
    keep_heaps_small()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
def block(size):
    made = libc.malloc(size)
    ctypes.memset(made, 1, size)
    return made
libc.free(block(8 << 20))
blocks = [block(300_000) for _ in range(100)]
kept = block(100_000)
full = resident()
for each in blocks:
    libc.free(each)
print(round(full - resident()))
"""
FIRST_REQUEST = """
import asyncio, sys
from cragside.bootstrap import Container, preload
from cragside.domain.document import SourceText
from cragside.settings import load_settings
settings = load_settings({"RAG_HOME": sys.argv[1]})
async def index():
    container = Container(settings)
    await container.intake.text(SourceText("otters", "Sea otters eat urchins."), workspace="default")
    await container.worker().run(until_idle=True)
    await container.close()
async def ask():
    container = Container(settings)
    await container.prepare()
    asked = await container.enricher.enrich({"prompt": "/rag What do sea otters eat?"})
    assert "urchins" in asked.request["prompt"]
    await container.close()
if sys.argv[2] == "index":
    asyncio.run(index())
else:
    preload(settings)
    known = set(sys.modules)
    asyncio.run(ask())
    print(sorted(name for name in set(sys.modules) - known if name.startswith("cragside")))
"""


@pytest.mark.skipif(not GLIBC, reason="This system's C library is not glibc.")
@pytest.mark.parametrize(("heaps", "freed"), [("small", range(25, 35)), ("as they are", range(5))])
def test_freed_blocks_go_back_to_the_system(heaps: str, freed: range) -> None:
    assert int(_run(FREED_MB, heaps)) in freed


@pytest.mark.skipif(not GLIBC, reason="This system's C library is not glibc.")
def test_the_environment_decides_before_our_settings() -> None:
    large = str(32 << 20)
    freed = _run(FREED_MB, "small", MALLOC_MMAP_THRESHOLD_=large, MALLOC_TRIM_THRESHOLD_=large)
    assert int(freed) in range(5)


def test_a_request_after_preloading_imports_nothing_of_cragside(tmp_path: Path) -> None:
    _run(FIRST_REQUEST, str(tmp_path), "index")
    assert _run(FIRST_REQUEST, str(tmp_path), "ask") == "[]\n"


def _run(script: str, *arguments: str, **variables: str) -> str:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, env={**plain, **variables}, capture_output=True, text=True, check=True).stdout
