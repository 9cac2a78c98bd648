"""The language of a question: told where it is sure, and not guessed."""

import pytest

from cragside.adapters.embedded.languages import question_language


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("When is the rent of the boat shed due?", "en"),
        ("what is git", "en"),
        ("Wann ist die Miete für das Bootshaus fällig?", "de"),
        ("Was kostet das?", "de"),
        ("Quand faut-il payer le loyer du hangar ?", "fr"),
        ("¿Cuándo vence el alquiler del cobertizo de barcos?", "es"),
        ("Wanneer moet de huur van het botenhuis worden betaald?", "nl"),
        ("Когда нужно платить за аренду сарая?", "ru"),
        ("ボート小屋の家賃はいつ払いますか", "ja"),
    ],
)
def test_a_question_with_function_words_has_a_language(question: str, language: str) -> None:
    assert question_language(question) == language


@pytest.mark.parametrize(
    "question",
    [
        "",
        "Hamburg",
        "Was kostet",
        "Priya Raman Northbridge Hamburg",
        "heat pump consumption november 2025",
        "wenzel worktop height compromise dishwasher",
        "aquadur spritzduese groesse",
        "PT-520 4711 (11.03.2025)",
        "??? !!! ...",
    ],
)
def test_names_keywords_and_short_questions_have_none(question: str) -> None:
    assert question_language(question) is None
