import pytest

from cragside.domain.query import question_of


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("/rag what is a kelp forest?", "what is a kelp forest?"),
        ("/RAG what?", "what?"),
        ("  \n/Rag\tline one\nline two ", "line one\nline two"),
        ("/rag", ""),
        ("/rag   ", ""),
        ("/rag\u00a0what?", "what?"),
    ],
)
def test_the_command_is_a_word_at_the_start_in_any_case(text: str, question: str) -> None:
    assert question_of(text) == question


@pytest.mark.parametrize(
    "text", ["", "/ragtime songs", "what is /rag?", "rag what?", "//rag what?", "/rag-2 x", "/rag:x"]
)
def test_other_prompts_are_no_commands(text: str) -> None:
    assert question_of(text) is None


def test_a_prefix_with_signs_is_taken_literally() -> None:
    assert question_of("!? what", "!?") == "what"
    assert question_of("/rag what", "!?") is None
