"""LlamaIndex retrieves through cragside."""

import pytest

from tests.plugs.conftest import LAMP, Run

pytestmark = pytest.mark.hosts


def test_a_retriever_gives_llama_index_evidence(run: Run) -> None:
    told = run("llama_index_plug.py")
    for way in ("sync", "asynchronous"):
        (found,) = told[way]
        assert found["node"]["text"] == LAMP
        assert found["score"] > 0.6
        metadata = found["node"]["metadata"]
        assert (metadata["source"], metadata["filename"], metadata["score"]) == ("local", "lamp.md", found["score"])
    prompt, source = told["engine"]
    assert LAMP in prompt
    assert source == LAMP
    assert told["nothing"] == []
    assert told["refused"].startswith("Unauthorized: ")
