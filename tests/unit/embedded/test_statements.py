import pytest

from cragside.adapters.embedded.answers import states_something
from cragside.adapters.embedded.embedder import Lexicon, WordLlamaEmbedder
from cragside.adapters.embedded.features import read_question

QUESTION = read_question("Who rents boat shed 12 at Lake Arden?", Lexicon(WordLlamaEmbedder()))


@pytest.mark.parametrize(
    "text",
    [
        "Boat shed 12 at Lake Arden is rented by the rowing club.",
        "the rowing club has rented boat shed 12",
        "Boat shed 12: rowing club",
        "| 12 | rowing club |",
        "12,rowing club",
        "shed = 12, tenant = rowing club",
        "Q: Who rents boat shed 12? A: The rowing club",
        "Who rents boat shed 12 at Lake Arden?\n- The rowing club",
        "User: Who rents boat shed 12?\nAssistant: The rowing club.",
    ],
)
def test_a_short_answer_states_something(text: str) -> None:
    assert states_something(text, QUESTION, "english")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Who rents boat shed 12 at Lake Arden?",
        "Who rents boat shed 12 at Lake Arden",
        "How wide is boat shed 12?",
        "Boat shed 12 at Lake Arden",
        "Boat shed 12 at Lake Arden is rented.",
        "Boat shed 12 at Lake Arden: an overview",
        "Renting the shed: FAQ",
        "Rowing at Lake Arden",
        "This page explains who rents boat shed 12 at Lake Arden.",
        "Who rents boat shed 12 at Lake Arden? | Lake News",
        "User: Who rents boat shed 12?\nAssistant: I don't know.",
        "The 12th boat shed at Lake Arden is rented.",
    ],
)
def test_an_echo_states_nothing(text: str) -> None:
    assert not states_something(text, QUESTION, "english")
