"""The eval of second opinions, with models that help, that do not, and that are too small to be asked."""

import asyncio
import os
import re
import sys

import pytest

from tests.blocks import ROOT
from tests.services.stub_ollama import StubOllama


async def evaluated(url: str, model: str) -> tuple[int, list[int]]:
    """Run the eval; return its exit status, and the calls without and with the model."""
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, ROOT / "evals/judges.py", "--model", model, "--questions", "16", "--url", url),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, complaints = await running.communicate()
    calls = [int(count) for count in re.findall(r"^  calls +(\d+)$", printed.decode(), re.MULTILINE)]
    assert len(calls) == 2, complaints.decode()
    assert running.returncode is not None
    return running.returncode, calls


@pytest.mark.parametrize(("says", "status"), [("no", 0), ("yes", 1)])
async def test_a_model_that_denies_does_no_harm_and_one_that_believes_all_is_told(says: str, status: int) -> None:
    async with StubOllama(lambda _: says, models=("qwen2.5-coder:1.5b",)) as stub:
        ended, (without, with_model) = await evaluated(stub.url, "qwen2.5-coder:1.5b")
    assert (ended, without) == (status, 0)
    assert with_model > 0


async def test_a_small_model_is_not_asked_and_changes_nothing(llama_cpp: str) -> None:
    assert await evaluated(llama_cpp, "smollm2:135m") == (0, [0, 0])
