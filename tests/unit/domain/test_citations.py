"""Citations are found with the sentences that they stand in."""

import pytest

from cragside.domain.citations import citations_in, sentences_of
from tests.bounds import bounded


def found(answer: str) -> list[tuple[int, str, str]]:
    return [(each.number, answer[each.start : each.end], each.claim) for each in citations_in(answer)]


def test_a_citation_belongs_to_its_sentence_before_and_behind_the_full_stop() -> None:
    answer = "The keeper lights the lamp [1]. He sleeps by day. [2] Nobody knows why."
    assert found(answer) == [(1, "[1]", "The keeper lights the lamp."), (2, "[2]", "He sleeps by day.")]


def test_several_numbers_each_have_a_place() -> None:
    assert found("It is lit at dusk [1][3].") == [
        (1, "[1]", "It is lit at dusk."),
        (3, "[3]", "It is lit at dusk."),
    ]
    assert found("It is lit at dusk [1, 12].") == [(1, "1", "It is lit at dusk."), (12, "12", "It is lit at dusk.")]


def test_citations_in_several_places_each_have_their_part_of_the_sentence() -> None:
    answer = "It was built of stone in 1880 [1] and lit by water power [2], long before others."
    assert [claim for _, _, claim in found(answer)] == [
        "It was built of stone in 1880",
        "and lit by water power, long before others.",
    ]


def test_a_part_of_too_few_words_stands_for_the_whole_sentence() -> None:
    answer = "Otters [1] hold hands while they sleep [2]."
    assert found(answer)[0][2] == "Otters hold hands while they sleep."


@pytest.mark.parametrize(
    "sentence",
    [
        "Dr. Weber met J. Smith at St. Ives, e.g. on Mondays.",
        "It weighs 3.5 tonnes and runs v. well.",
        "Is it lit? ",
        "Er wohnt z. B. in Bonn.",
    ],
)
def test_an_abbreviation_ends_no_sentence(sentence: str) -> None:
    assert sentences_of(sentence) == [sentence.strip()]


def test_items_of_a_list_are_sentences_of_their_own() -> None:
    assert [claim for _, _, claim in found("They are:\n- the lamp [1]\n- the bell [2]")] == ["the lamp", "the bell"]


def test_places_are_code_points() -> None:
    answer = "🦦 sleeps in the kelp [1]."
    (only,) = citations_in(answer)
    assert answer[only.start : only.end] == "[1]"


@pytest.mark.parametrize("answer", ["", "No citation.", "A link [here](x) and [12345] and [a1].", "[]"])
def test_other_brackets_are_no_citations(answer: str) -> None:
    assert list(citations_in(answer)) == []


@pytest.mark.parametrize("piece", ["[1] ", "[1, ", ". ", "a. ", " ", "\n", "[1", "1,"])
def test_long_answers_of_one_piece_are_read(piece: str) -> None:
    assert len(list(citations_in(piece * 10_000))) == (10_000 if piece == "[1] " else 0)


def test_a_long_claim_is_cut() -> None:
    (only,) = citations_in("word " * 5_000 + "[1].")
    assert len(only.claim) == 1_000


def test_of_a_long_answer_no_more_is_read_than_asked_for() -> None:
    with bounded():
        assert next(citations_in("It is lit [1]. " * 70_000)).claim == "It is lit."
