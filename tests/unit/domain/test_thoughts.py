import pytest

from cragside.domain.exchange import without_thoughts
from tests.bounds import read_within

ANSWER = "The shed is blue.\n\nIt has two doors."


@pytest.mark.parametrize(
    "text",
    [
        "<think>Red?</think>{}",
        "<think>\nRed, or\n\nblue?\n</think>\n\n{}",
        "\n  <THINK>Red?</Think>\n{}",
        "<think></think>\n\n{}",
        "<thinking>Red?</thinking>{}",
        "<thought>Red?</thought>\n{}",
        "<reasoning>Red?</reasoning>\n{}",
        "<reflection>Red?</reflection>\n{}",
        "<scratchpad>Red?</scratchpad>\n{}",
        "<seed:think>Red?</seed:think>{}",
        "[THINK]Red?[/THINK]{}",
        "◁think▷Red?◁/think▷{}",
        "<|begin_of_thought|>\nRed?\n<|end_of_thought|>\n\n{}",
        '<details type="reasoning" done="true" duration="3">\n<summary>Thought</summary>\n> Red?\n</details>\n{}',
        '<details id="a" done="true" type="reasoning"><summary>Thought</summary>Red?</details>\n{}',
        '<details type="reasoning">\n<summary>Thought</summary>\n> Red? </details>\n> Or blue?\n</details>\n{}',
        "<think>Red?</think><think>Or blue?</think>{}",
        "<think>Red?</think>\n\n<thinking>Or blue?</thinking>\n\n{}",
        "Red, or `blue`?\n</think>\n\n{}",
        "Red?</think>{}",
        "</think>\n\n{}",
        "<|channel|>analysis<|message|>Red?<|end|><|start|>assistant<|channel|>final<|message|>{}<|return|>",
        "<|channel|>final<|message|>{}",
    ],
)
def test_thoughts_ahead_of_an_answer_are_left_out(text):
    assert without_thoughts(text.replace("{}", ANSWER)) == ANSWER


def test_thoughts_between_paragraphs_are_left_out():
    assert without_thoughts("The shed.\n<think>Red?</think>\nIt is blue.") == "The shed.\n\nIt is blue."


@pytest.mark.parametrize(
    "text", ["<think>Red", "<think>Red?</think>\n\n<think>Or", "<|channel|>analysis<|message|>Red"]
)
def test_an_answer_that_was_cut_off_in_its_thoughts_is_empty(text):
    assert without_thoughts(text).strip() == ""


@pytest.mark.parametrize(
    "text",
    [
        ANSWER,
        "",
        "DeepSeek writes <think> before and </think> behind its thoughts.",
        "The tag `</think>` ends them.",
        "I think</b> so.",
        "A [think] b",
        "It is blue.\n<think>is a tag that nobody closes",
        "<details>\n<summary>More</summary>x</details>",
    ],
)
def test_an_answer_that_speaks_about_thoughts_stays_whole(text):
    assert without_thoughts(text) == text


@pytest.mark.parametrize(
    "piece",
    [
        "<think>",
        "</think>",
        "<think></think>",
        "\n<think>",
        "\n ",
        " <think>\n",
        "<details type=reasoning",
        "<|",
        "<details type=reasoning>\n>",
        "<details a ",
    ],
)
def test_many_tags_are_read_in_time(piece):
    read_within(2, without_thoughts, lambda length: piece * (length // len(piece)))
    read_within(2, without_thoughts, lambda length: "<think>" + piece * (length // len(piece)))
