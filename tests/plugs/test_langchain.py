"""LangChain retrieves and calls tools through cragside."""

import pytest

from tests.plugs import hostile
from tests.plugs.conftest import LAMP, TOKEN, Run

pytestmark = pytest.mark.hosts


def test_a_retriever_and_a_tool_give_langchain_evidence(run: Run) -> None:
    with hostile.answering() as attacker:
        told = run("langchain_plug.py", attacker.url, *hostile.NAMES)
    assert hostile.wrong(told, attacker) == {}
    for way in ("sync", "asynchronous"):
        (document,) = told[way]
        assert document["page_content"] == LAMP
        assert document["id"]
        metadata = document["metadata"]
        assert (metadata["source"], metadata["filename"]) == ("local", "lamp.md")
        assert metadata["score"] > 0.6
    assert told["inside_a_loop"] == LAMP
    assert told["chain"] == f"Human: {LAMP}"
    assert told["nothing"] == []
    assert TOKEN not in told["shown"]
    assert "[1]" in told["tool"]
    assert LAMP in told["tool"]
    assert told["tool_artifact"] == LAMP
    assert told["tool_nothing"] == "No evidence was found."
    assert told["schema"] == ["question"]
    assert told["refused"].startswith("Unauthorized: ")
    assert told["not_there"].startswith("ServiceUnavailable: ")
