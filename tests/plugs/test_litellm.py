"""LiteLLM's proxy adds evidence to requests, by the guardrail or by the callback."""

from typing import Any

import pytest

from tests.plugs.conftest import LAMP, TOKEN, run_program
from tests.services.cragside_server import CragsideServer

pytestmark = pytest.mark.hosts

QUESTION = "What does the lamp burn?"


def unchanged(told: dict[str, Any], text: str) -> bool:
    return bool(told == {"messages": [{"role": "user", "content": text}], "context": None, "mine": 1})


@pytest.fixture(scope="module")
def told(cragside: CragsideServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_program(cragside, tmp_path_factory.mktemp("litellm"), "litellm_plug.py")


def test_the_proxys_hooks_add_evidence(told: dict[str, Any]) -> None:
    callback = told["callback"]
    for asked in (told["guardrail"], told["another_loop"], callback["chat"]):
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

    of_one, of_another = told["two_users"]
    assert LAMP in of_one[0]["content"]
    assert LAMP not in str(of_another)


def test_a_wrong_configuration_is_told_at_the_start(told: dict[str, Any]) -> None:
    assert "command has to be one word" in told["no_word"]
    assert "fail_mode is open or closed" in told["no_mode"]
    prefix = "Requests will go without evidence: "
    assert told["other_command"] == (
        f"{prefix}The endpoint did not answer with evidence. Is it a cragside with the command /docs?"
    )
    assert told["not_there"].startswith(f"{prefix}The service at http://127.0.0.1:9 cannot be reached")
    assert told["refused"].startswith(prefix)
    assert TOKEN not in str(told)
