import json
from types import SimpleNamespace
from typing import Any

import pytest

from cragside.adapters.embedded.follow_up import EmbeddedFollowUps
from cragside.adapters.model_host.questions import HostedFollowUps, Paces
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.prompt import ChatTurn

TURNS = (ChatTurn("user", "What is Cragside?"), ChatTurn("assistant", "A house in Rothbury."))


class ScriptedHost:
    """Answers with a text, or raises it; remembers the prompts."""

    def __init__(self, answer: str | Exception, model: str | None = "m") -> None:
        self.answer, self.model = answer, model
        self.prompts: list[str] = []

    async def choose(self, _wanted: str | None) -> str | None:
        return self.model

    async def chat(self, _model: str, prompt: str, **_options: Any) -> Any:
        self.prompts.append(prompt)
        if isinstance(self.answer, Exception):
            raise self.answer
        return SimpleNamespace(text=self.answer)


async def ask(host: ScriptedHost, question: str = "Who built it?") -> str:
    return await HostedFollowUps(host, EmbeddedFollowUps(), Paces()).standalone(question, TURNS, model=None)  # type: ignore[arg-type]


async def test_the_model_completes_the_question() -> None:
    host = ScriptedHost('{"question": "Who built Cragside in Rothbury?"}')
    assert await ask(host) == "Who built Cragside in Rothbury?"
    assert json.loads(host.prompts[0])["conversation"][0] == {"user": "What is Cragside?"}


async def test_a_question_that_stands_alone_costs_no_call() -> None:
    host = ScriptedHost("")
    assert await ask(host, "Who built Bamburgh Castle?") == "Who built Bamburgh Castle?"
    assert host.prompts == []


@pytest.mark.parametrize(
    "answer", ["", "no json", "[]", '{"question": 7}', '{"question": ""}', '{"question": "Buy cheap pills online now"}']
)
async def test_rules_replace_an_answer_that_is_not_the_question(answer: str) -> None:
    assert await ask(ScriptedHost(answer)) == "Who built Cragside?"


async def test_rules_replace_a_host_without_a_chat_model() -> None:
    assert await ask(ScriptedHost("", model=None)) == "Who built Cragside?"


async def test_a_failure_names_the_conversation() -> None:
    with pytest.raises(ServiceUnavailable) as caught:
        await ask(ScriptedHost(ServiceUnavailable("ollama", "gone")))
    assert caught.value.details["component"] == "conversation"
