"""LlamaIndex retrieves through cragside."""

import pytest

from tests.plugs import hostile
from tests.plugs.conftest import LAMP, Run

pytestmark = pytest.mark.hosts


def test_a_retriever_gives_llama_index_evidence(run: Run) -> None:
    with hostile.answering() as attacker:
        told = run("llama_index_plug.py", attacker.url, *hostile.NAMES)
    assert hostile.wrong(told, attacker) == {}
    for way in ("sync", "asynchronous"):
        (found,) = told[way]
        assert found["node"]["text"] == LAMP
        assert found["score"] > 0.6
        metadata = found["node"]["metadata"]
        assert (metadata["source"], metadata["filename"], metadata["score"]) == ("local", "lamp.md", found["score"])
    assert told["inside_a_loop"] == LAMP
    prompt, source = told["engine"]
    assert LAMP in prompt
    assert source == LAMP
    assert told["nothing"] == []
    assert told["refused"].startswith("Unauthorized: ")
