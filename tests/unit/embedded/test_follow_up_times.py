import pytest

from cragside.adapters.embedded.follow_up import completed, moved
from cragside.domain.prompt import ChatTurn


@pytest.mark.parametrize(
    ("question", "last", "meant"),
    [
        ("and the day before?", "Who was on duty on 1 March 2024?", "29 February 2024"),
        ("and two weeks later?", "Who keeps the lock on 20 July?", "3 August"),
        ("a month later?", "What broke on 31.01.2025?", "28 February 2025"),
        ("and 6 months before that?", "fees in july 2025", "January 2025"),
        ("the same month one year earlier?", "How much rain fell in May 2025?", "May 2024"),
        ("And the year after?", "What did the berth cost in 2023?", "2024"),
        ("Und im Jahr darauf?", "Was kostete das Lager 2023?", "2024"),
        ("und im Vorjahr?", "Wie hoch war der Beitrag 2024?", "2023"),
        ("drei Tage später?", "Was war am 3. Mai 2025?", "6 May 2025"),
        ("et l'année suivante ?", "Combien coûtait le bail en 2022 ?", "2023"),
        ("et deux semaines plus tard ?", "Qui garde la clé le 4 mai ?", "18 May"),
    ],
)
def test_a_distance_moves_the_date_of_the_last_question(question: str, last: str, meant: str) -> None:
    found = moved(question, last)
    assert found is not None
    assert found[0] == meant


@pytest.mark.parametrize(
    ("question", "last"),
    [
        ("who came after?", "Who came on 3 May?"),
        ("and two weeks later?", "Who keeps the lock?"),
        ("and two weeks later?", "What did it cost in 2023?"),
        ("what came a year after 2019?", "What did it cost in 2023?"),
        ("and a day before 4 May?", "Who came on 3 June?"),
        ("and two days later?", "How much rain fell in May 2025?"),
    ],
)
def test_without_a_distance_or_a_date_that_it_fits_nothing_moves(question: str, last: str) -> None:
    assert moved(question, last) is None


def test_the_rest_of_the_last_question_goes_with_the_moved_date() -> None:
    turns = [ChatTurn("user", "Who keeps the lock on 20 July?"), ChatTurn("assistant", "Maren.")]
    assert completed("and two weeks later?", turns) == "and two weeks later (keeps lock 3 August)?"


def test_another_thing_is_asked_about_without_the_name_of_the_last_one() -> None:
    turns = [ChatTurn("user", "How deep does the Rauth 40 cut?"), ChatTurn("assistant", "6 mm.")]
    standalone = completed("and on the other one?", turns)
    assert "cut" in standalone
    assert "Rauth" not in standalone
