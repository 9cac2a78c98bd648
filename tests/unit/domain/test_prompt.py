import pytest

from cragside.domain.errors import ValidationError
from cragside.domain.prompt import inject, question_in, user_text


def test_a_prompt_gets_the_block_before_its_question() -> None:
    request = {"prompt": "/rag what?", "model": "m", "x": [1]}
    assert question_in(request, "/rag") == "what?"
    assert inject(request, "BLOCK", "what?") == {"prompt": "BLOCK\n\nwhat?", "model": "m", "x": [1]}
    assert request["prompt"] == "/rag what?"


def test_without_evidence_only_the_command_is_removed() -> None:
    assert inject({"prompt": "/rag what?"}, "", "what?") == {"prompt": "what?"}


def test_messages_get_a_system_message_right_before_the_last_user_message() -> None:
    request = {
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "hi"},
            {"role": "user", "content": "/rag what?", "images": ["aGk="]},
            {"role": "tool", "content": "42"},
        ]
    }
    messages = inject(request, "BLOCK", "what?")["messages"]
    assert [m["role"] for m in messages] == ["system", "user", "assistant", "system", "user", "tool"]
    assert messages[3]["content"] == "BLOCK"
    assert messages[4] == {"role": "user", "content": "what?", "images": ["aGk="]}
    assert len(request["messages"]) == 5


def test_in_parts_the_first_text_part_carries_the_command() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    parts = [image, {"type": "text", "text": "/rag what?", "cache": True}, {"type": "text", "text": "more"}]
    request = {"messages": [{"role": "user", "content": parts}]}
    assert question_in(request, "/rag") == "what?"
    content = inject(request, "BLOCK", "what?")["messages"][1]["content"]
    assert content == [image, {"type": "text", "text": "what?", "cache": True}, {"type": "text", "text": "more"}]


def test_only_the_last_user_text_is_read() -> None:
    request = {"messages": [{"role": "user", "content": "/rag old"}, {"role": "user", "content": "new"}]}
    assert question_in(request, "/rag") is None


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"prompt": None},
        {"messages": []},
        {"messages": [{"role": "user"}]},
        {"messages": [{"role": "user", "content": []}]},
    ],
)
def test_a_request_without_user_text_has_none(request_: dict[str, object]) -> None:
    assert user_text(request_) is None


@pytest.mark.parametrize(
    "request_",
    [
        {"prompt": 7},
        {"prompt": ["/rag"]},
        {"messages": "x"},
        {"messages": {}},
        {"messages": ["x"]},
        {"messages": [{"role": "user", "content": 5}]},
        {"messages": [{"role": "user", "content": {"text": "/rag"}}]},
    ],
)
def test_wrong_types_are_refused_with_the_field(request_: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as caught:
        user_text(request_)
    assert caught.value.details["field"] in request_
