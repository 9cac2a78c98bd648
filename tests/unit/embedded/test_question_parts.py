"""Parts of a question: each keeps what they share and leaves out the others."""

import pytest

from cragside.adapters.embedded.question_parts import EmbeddedQuestionParts
from cragside.domain.evidence import Document
from cragside.domain.outcome import MOST_PARTS, Asked, Part

READER = EmbeddedQuestionParts()


def parts(question: str) -> list[str]:
    return [part.question for part in READER.read(question).parts]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (
            "Which saw is louder, the KS-30 or the KS-45?",
            ["Which saw is louder the KS-30 ?", "Which saw is louder the KS-45 ?"],
        ),
        ("rainfall may 2023 compared with june 2024", ["rainfall may 2023", "rainfall june 2024"]),
        (
            "Wie stieg der Beitrag von 2023 auf 2024?",
            ["Wie stieg der Beitrag von 2023 ?", "Wie stieg der Beitrag von 2024 ?"],
        ),
        ("Was kostet der Saal und was kostet die Küche?", ["Was kostet der Saal?", "was kostet die Küche?"]),
        ("Prix du billet à Lille et à Metz", ["Prix du billet à Lille", "Prix du billet à Metz"]),
        ("Is the tent heavier than the awning?", ["Is the tent heavier ?", "Is heavier the awning ?"]),
        ("battery life drill vs impact driver", ["battery life drill", "battery life impact driver"]),
        (
            "the difference between the fee for members and for guests",
            ["the difference between the fee for members", "the difference between the fee for guests"],
        ),
        ("wages of Ines, Bodo and Carla", ["wages of Ines", "wages of Bodo", "wages of Carla"]),
        (
            "who has the keys: cellar, attic, shed",
            ["who has the keys cellar?", "who has the keys attic?", "who has the keys shed?"],
        ),
        (
            "price of screws, nails, glue in 2024",
            ["price of screws in 2024", "price of nails in 2024", "price of glue in 2024"],
        ),
        ("kayak vs dinghy weight", ["kayak weight", "dinghy weight"]),
        ("day ticket vs season ticket price", ["day ticket price", "season ticket price"]),
        ("Kayak vs Dinghy battery range", ["Kayak battery range", "Dinghy battery range"]),
        (
            "rotes Zelt oder blaues Zelt, was ist schwerer",
            ["rotes Zelt was ist schwerer", "blaues Zelt was ist schwerer"],
        ),
        ("who is older, ines or bodo", ["who is older ines", "who is older bodo"]),
        ("price of kayak and dinghy", ["price of kayak", "price of dinghy"]),
        (
            "how much more did we spend in 2025 than in 2024",
            ["how much more did we spend in 2025", "how much more did we spend in 2024"],
        ),
        (
            "Compare the noise of the pump with that of the fan heater",
            ["Compare the noise of the pump", "Compare the noise that of the fan heater"],
        ),
    ],
)
def test_a_part_is_the_question_without_the_other_parts(question: str, expected: list[str]) -> None:
    assert parts(question) == expected


@pytest.mark.parametrize(
    "question",
    [
        "When does the ferry from Lindau to Rorschach leave?",
        "How long is the ferry between Lindau and Rorschach under way?",
        "Is the office open from 8 to 12?",
        "When and where is the meeting?",
        "Wann und wo ist die Sitzung?",
        "Who looks after the boiler?",
        "where does the river begin and end",
        "Tag und Uhrzeit der Abgabe",
        "and",
        "A, B",
        ": , ?",
        "",
    ],
)
def test_a_question_about_one_thing_has_no_parts(question: str) -> None:
    assert parts(question) == []


def test_things_that_share_no_word_do_not_stand_alone() -> None:
    asked = READER.read("What is the difference between the KS-30 and the KS-45?")
    assert [(part.named, part.graded_alone) for part in asked.parts] == [("KS-30", False), ("KS-45", False)]


def test_no_more_parts_are_read_than_are_searched() -> None:
    assert len(parts("keys: cellar, attic, shed, garage, gate, letter box")) == MOST_PARTS


def test_a_long_text_has_no_parts() -> None:
    assert READER.read("Which is older, the barn or the mill? " * 20) == Asked()


def test_a_second_question_that_needs_the_first_one_is_completed_and_does_not_stand_alone() -> None:
    first, second = READER.read("Who repaired the pump, and what did he charge?").parts
    assert first == Part("Who repaired the pump?", graded_alone=False)
    assert "pump" in second.question
    assert not second.graded_alone


@pytest.mark.parametrize(
    "question",
    [
        "List all repairs of the van",
        "Which boats are in hall 2?",
        "what tools belong to the club",
        "alle Rechnungen von 2024",
        "Welche Geräte haben wir bei Mahnke gekauft?",
        "Welche Geräte sind defekt?",
        "Quels outils sont au garage ?",
        "une liste des membres",
        "which of both saws is older",
        "all workshop prices",
        "welche kurse gibt es",
    ],
)
def test_a_question_for_several_asks_for_a_list(question: str) -> None:
    assert READER.read(question).a_list


@pytest.mark.parametrize(
    "question",
    [
        "Who is on the list?",
        "is the van all right",
        "Which bus goes to the harbour?",
        "What does Ines earn?",
        "Welche Farbe hat die Tür?",
        "Quelle est la couleur de la porte ?",
    ],
)
def test_a_question_for_one_thing_asks_for_no_list(question: str) -> None:
    assert not READER.read(question).a_list


def test_what_no_passage_names_is_told() -> None:
    asked = READER.read("weight of the drill PD-20 or the drill PD-35")
    evidence = [Document("1", "The PD-20 weighs 1.9 kg.", "local", title="Drill")]
    assert READER.unnamed(asked, evidence) == ["drill PD-35"]


def test_a_thing_in_another_inflection_or_a_compound_is_named() -> None:
    asked = READER.read("Pflege der Hecke oder des Rasens")
    evidence = [Document("1", "Die Hecken im März.", "local"), Document("2", "Rasenpflege im Mai", "local")]
    assert READER.unnamed(asked, evidence) == []


def test_things_that_are_enumerated_in_single_words_need_no_name() -> None:
    asked = READER.read("cost of brakes, tyres and lights of the van")
    assert len(asked.parts) == 3
    assert READER.unnamed(asked, [Document("1", "The van's brakes were changed.", "local")]) == []
