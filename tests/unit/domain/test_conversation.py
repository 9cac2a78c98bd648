from typing import Any

import pytest

from cragside.domain.context import pack
from cragside.domain.evidence import Document
from cragside.domain.prompt import LONGEST_TURN, MOST_TURNS, ChatTurn, earlier_turns


def said(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def turns(*messages: dict[str, Any]) -> tuple[ChatTurn, ...]:
    return earlier_turns({"messages": [*messages, said("user", "/rag and its rotor?")]}, "/rag")


def test_commands_and_other_roles_are_left_out() -> None:
    found = turns(said("system", "EVIDENCE"), said("user", "/rag What is kelp?"), said("assistant", "Algae."))
    assert found == (ChatTurn("user", "What is kelp?"), ChatTurn("assistant", "Algae."))


def test_the_evidence_of_an_earlier_prompt_is_left_out() -> None:
    block = pack([Document("d", "urchins eat kelp", "local", score=0.9)], budget=900, count_tokens=len).block
    assert block
    assert turns(said("user", f"{block}\n\nWhat is kelp?")) == (ChatTurn("user", "What is kelp?"),)


def test_parts_are_read_and_contents_of_other_types_are_left_out() -> None:
    odd: list[Any] = [None, 7, {}, [], [{"type": "image"}], "  "]
    found = turns(said("user", [{"type": "text", "text": "What is kelp?"}]), *(said("user", each) for each in odd))
    assert found == (ChatTurn("user", "What is kelp?"),)


def test_only_the_last_turns_are_read_and_only_their_beginning() -> None:
    found = turns(*(said("user", f"{number} " + "word " * 1000) for number in range(10_000)))
    assert len(found) == MOST_TURNS
    assert found[-1].text.startswith("9999 ")
    assert all(len(turn.text) <= LONGEST_TURN for turn in found)


def test_a_text_of_a_million_characters_is_left_out() -> None:
    assert turns(said("user", "What is kelp?"), said("user", "<evidence-" * 100_000)) == (
        ChatTurn("user", "What is kelp?"),
    )


@pytest.mark.parametrize("request_", [{"prompt": "/rag x"}, {"messages": []}, {"messages": [said("user", "/rag x")]}])
def test_a_request_without_a_conversation_has_no_turns(request_: dict[str, Any]) -> None:
    assert earlier_turns(request_, "/rag") == ()
