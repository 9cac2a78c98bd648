"""Dates are equal in any form, and parts of several dates make none."""

import pytest

from cragside.adapters.embedded.numbers import asked_dates, stated_dates, without_dates
from cragside.domain.dates import Period
from tests.bounds import read_within


def states(text: str, question: str, place: str = "") -> bool:
    stated = [period for each in stated_dates(text.lower(), place) for period in each.periods]
    return all(asked.in_full(stated) for asked in asked_dates(question))


FORMS = [
    "2024-09-03",
    "2024/09/03",
    "03.09.2024",
    "3.9.2024",
    "03.09.24",
    "3/9/2024",
    "03-09-2024",
    "3 September 2024",
    "3rd of September 2024",
    "3 Sept. 2024",
    "Tue, 03 Sep 2024 18:30",
    "September 3, 2024",
    "Sep 3rd, 2024",
    "3. September 2024",
    "der dritte September 2024",
    "den 3. Sept. 2024",
    "le 3 septembre 2024",
]


@pytest.mark.parametrize("asked", FORMS)
@pytest.mark.parametrize("stated", FORMS)
def test_a_day_is_equal_in_all_forms(asked: str, stated: str) -> None:
    assert states(f"The piano tuner came on {stated} at four.", f"who came on {asked}?")


@pytest.mark.parametrize("asked", FORMS)
@pytest.mark.parametrize(
    "text",
    [
        "2024-09-04: the tuner",
        "2023-09-03: the tuner",
        "Der Klavierstimmer kam am 3. Oktober 2024.",
        "L'accordeur est venu le 3 août 2024, la facture est de septembre 2024.",
        "The tuner came on 3 August 2024 and on 12 September 2024.",
        "Version 3.9.20240 and 1.3.9.2024",
        "September 2024",
    ],
)
def test_another_day_or_parts_of_several_are_not_that_day(asked: str, text: str) -> None:
    assert not states(text, f"who came on {asked}?")


@pytest.mark.parametrize(
    "asked", ["october 2023", "Oktober 2023", "en octobre 2023", "Oct. 2023", "2023-10", "10/2023"]
)
@pytest.mark.parametrize(
    "text", ["month: 2023-10; litres: 40", "10.2023", "am 17.10.23", "Oct 5, 2023", "5 octobre 2023"]
)
def test_a_month_is_in_each_of_its_days(asked: str, text: str) -> None:
    assert states(text, f"litres {asked}")


@pytest.mark.parametrize("text", ["2023-11", "2024-10", "October 2022, paid in 2023", "5 October 2024, due 3 May 2023"])
def test_a_month_of_one_date_and_a_year_of_another_are_no_month(text: str) -> None:
    assert not states(text, "litres october 2023")


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("closed from 3 to 17 August 2024", "open on 9.8.2024?"),
        ("closed 28 July - 4 August 2024", "open on 2024-08-02?"),
        ("geschlossen vom 28.7. bis 4.8.2024", "am 2. August 2024 geöffnet?"),
        ("fermé du 3 au 17 août 2024", "ouvert le 9 août 2024"),
        ("27 December 2023 to 4 January 2024", "away on 2 January 2024?"),
        ("away 27 Dec to 4 Jan 2024", "away on 28 December 2023?"),
        ("4 and 18 May 2024", "training 2024-05-18"),
        ("4./5. Mai 2024", "Übung am 04.05.2024"),
        ("May 4, 11 and 18, 2024", "training 11 May 2024"),
        ("from March to May 2024", "rent in april 2024"),
        ("the twelfth of May", "on May 12"),
    ],
)
def test_a_range_or_a_list_has_its_days(text: str, question: str) -> None:
    assert states(text, question)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("closed from 3 to 17 August 2024", "open on 18 August 2024?"),
        ("4 and 18 May 2024", "training 11 May 2024"),
        ("geschlossen vom 28.7. bis 4.8.2024", "am 5. August 2024 geöffnet?"),
        ("away 27 Dec to 4 Jan 2024", "away on 28 December 2024?"),
    ],
)
def test_a_range_or_a_list_has_no_other_days(text: str, question: str) -> None:
    assert not states(text, question)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("thu 6 jun. bees swarmed", "beekeeping-2024.txt"),
        ("# Bees 2024\n\n6 June: swarmed", ""),
        ("# Bienen\n## 2024\n- 6.6.: Schwarm", "bienen-2020-2025.md"),
        ("Date: Fri, 7 Jun 2024\n\nthe bees swarmed on June 6th", ""),
        ("In 2024 the bees swarmed on 6 June.", ""),
        ("le 6 juin, essaimage", "Le rucher en 2024"),
    ],
)
def test_a_date_without_a_year_is_of_the_year_of_its_heading_or_place(text: str, place: str) -> None:
    assert states(text, "what happened on 6.6.2024", place)
    assert not states(text, "what happened on 6.6.2023", place)
    assert not states(text, "what happened on 8.6.2024", place)


def test_a_heading_goes_before_the_place() -> None:
    text = "## 2022\n6 June: swarmed\n## 2023\n8 June: swarmed"
    assert states(text, "8 June 2023", "bees-2024.md")
    assert not states(text, "6 June 2023", "bees-2024.md")


def test_a_date_without_a_year_takes_none_from_another_date() -> None:
    assert not states("Signed on 13 May 2024. The next meeting is on 21 June.", "meeting on 21 June 2024")


def test_a_question_without_a_year_asks_for_any() -> None:
    assert states("am 6.6.2021 geschwärmt", "what happened on June 6th")


@pytest.mark.parametrize(
    "text",
    [
        "the picnic is postponed to 19 june 2024",
        "das fest wird auf den 19. juni 2024 verlegt",
        "au 19 juin 2024, reporté",
    ],
)
def test_a_day_to_which_something_moves_may_have_been_another_day_of_its_year(text: str) -> None:
    moved = [period for each in stated_dates(text, "") for period in each.periods]
    [day], [other_year], [month] = map(asked_dates, ("on 12 June 2024", "on 12 June 2023", "in May 2024"))
    assert day.may_be_moved(moved)
    assert not day.in_full(moved)
    assert not other_year.may_be_moved(moved)
    assert not month.may_be_moved(moved)


@pytest.mark.parametrize("text", ["the picnic is on 19 june 2024", "postponed.\n" + "we sing. " * 20 + "19 june 2024"])
def test_another_day_alone_says_nothing_of_a_move(text: str) -> None:
    stated = [period for each in stated_dates(text, "") for period in each.periods]
    assert not asked_dates("on 12 June 2024")[0].may_be_moved(stated)


def test_a_date_with_slashes_is_read_both_ways() -> None:
    assert states("2024-04-05", "on 5/4/2024")
    assert states("2024-05-04", "on 5/4/2024")
    assert not states("2024-04-05", "on 4.5.2024")


@pytest.mark.parametrize(
    "question",
    ["may I march", "3/4 inch screws", "version 3.11.4", "chapter 4.7", "who is Mr March", "1.2.3", "24/7"],
)
def test_other_numbers_and_words_are_no_dates(question: str) -> None:
    assert asked_dates(question) == []


@pytest.mark.parametrize(
    ("question", "month"),
    [
        ("electricity march", 3),
        ("how much electricity did we use in the boat house may?", 5),
        ("Strom Mai", 5),
        ("Wasser August", 8),
        ("loyer mars", 3),
        ("what did the august meeting approve", 8),
        ("das Mai-Protokoll", 5),
    ],
)
def test_a_month_that_is_also_another_word_is_one_by_its_place(question: str, month: int) -> None:
    [date] = asked_dates(question)
    assert (date.periods, date.sure) == ((Period.of(None, month),), False)


@pytest.mark.parametrize(
    "question",
    [
        *("may I bring a dog", "who may", "what may dogs eat", "may visitors fish", "you may"),
        *("the march to the town hall", "when is the march", "where did they march", "who is August Bebel"),
        *("darf ich das mai", "march"),
    ],
)
def test_a_word_in_another_place_is_no_month(question: str) -> None:
    assert asked_dates(question) == []


def test_a_question_keeps_its_other_numbers() -> None:
    assert without_dates("Boat 12 on 3 May 2024, 4 crew").split() == ["boat", "12", "on", ",", "4", "crew"]


@pytest.mark.parametrize("text", ["may x ", "é may ", "the march x ", "march "])
def test_a_question_of_any_length_is_read_in_time(text: str) -> None:
    read_within(2.0, asked_dates, lambda length: text * (length // len(text)))
