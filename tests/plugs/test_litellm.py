"""LiteLLM's proxy adds evidence to requests, by the guardrail or by the callback."""

from typing import Any

import pytest

from tests.plugs.conftest import LAMP, Run

pytestmark = pytest.mark.hosts

QUESTION = "What does the lamp burn?"


def unchanged(told: dict[str, Any], text: str) -> bool:
    return bool(told == {"messages": [{"role": "user", "content": text}], "context": None, "mine": 1})


def test_the_proxys_hooks_add_evidence(run: Run) -> None:
    told = run("litellm_plug.py")
    callback = told["callback"]
    for asked in (told["guardrail"], callback["chat"]):
        evidence, question = asked["messages"]
        assert evidence["role"] == "system"
        assert LAMP in evidence["content"]
        assert question == {"role": "user", "content": QUESTION}
        assert (asked["context"]["verdict"], asked["mine"]) == ("local", 1)
    assert LAMP in callback["completion"]["prompt"]
    assert callback["completion"]["prompt"].endswith(QUESTION)

    for untouched in (told["not_asked"], told["open"], callback["other_call"]):
        assert unchanged(untouched, f"/rag {QUESTION}")
    assert unchanged(callback["other_text"], QUESTION)
    assert told["closed"].startswith("ServiceUnavailable: ")
