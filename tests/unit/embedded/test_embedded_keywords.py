import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cragside.adapters.embedded.keywords import asked_words, keywords_of, search_query, searched_words
from cragside.adapters.embedded.words import terms


def test_names_are_low_level_and_phrases_high_level() -> None:
    found = keywords_of("Could you please tell me why Grace Hopper's first compiler mattered to the US Navy?")
    assert {"US Navy", "compiler"} <= set(found.low)
    assert any(keyword.startswith("Grace Hopper") for keyword in found.low)
    assert any(" " in keyword for keyword in found.high)
    assert not {"please", "tell", "could", "the"} & {k.lower() for k in [*found.low, *found.high]}


def test_quoted_phrases_come_first() -> None:
    assert keywords_of('who wrote "The Raven" in Baltimore').low[0] == "The Raven"


def test_acronyms_are_not_function_words() -> None:
    assert "US" in " ".join(keywords_of("when did the US join").low)


def test_a_german_question_loses_its_german_function_words() -> None:
    assert keywords_of("Was ist die Wirkung von Insulin auf den Blutzucker?").low == [
        "Wirkung",
        "Insulin",
        "Blutzucker",
    ]


def test_war_is_a_topic_in_english_and_a_function_word_in_german() -> None:
    assert "war" in keywords_of("why was there a war").low
    assert "war" not in keywords_of("wer war der Kaiser von Österreich").low


@pytest.mark.parametrize("question", ["what is it?", "to be or not to be", "who"])
def test_a_question_of_function_words_alone_still_has_keywords(question: str) -> None:
    found = keywords_of(question)
    assert found.low
    assert found.high


def test_a_blank_question_has_none() -> None:
    assert keywords_of("   ") == type(keywords_of(""))([], [])


@given(st.text(max_size=400))
def test_keywords_are_few_and_not_blank_whatever_the_text(question: str) -> None:
    found = keywords_of(question)
    assert len(found.low) <= 12
    assert len(found.high) <= 12
    assert all(keyword.strip() for keyword in [*found.low, *found.high])
    assert bool(found.low) == bool(found.high)


def test_question_and_passage_meet_in_their_stems() -> None:
    assert set(terms("forecasting methods")) <= set(terms("The method of forecast was new."))


def test_inflected_german_meets_its_stem() -> None:
    assert set(terms("die Zahlungen der Ämter")) == set(terms("eine Zahlung an das Amt"))


def test_accents_do_not_separate_words() -> None:
    assert terms("Hōryū-ji") == terms("horyu ji")
    assert terms("échame la culpa") == terms("echame la culpa")


def test_scripts_without_spaces_are_compared_by_pairs_of_characters() -> None:
    assert set(terms("日本の首都はどこですか")) <= set(
        terms("東京は日本の首都であり、世界最大級の都市圏を形成している。")
    )


def test_combining_marks_stay_with_their_letters() -> None:
    assert "हिन्दी" in terms("हिन्दी भाषा")


def test_identifiers_are_found_by_their_parts_and_languages_by_their_signs() -> None:
    assert {"run", "executor"} <= set(terms("loop.run_in_executor(None, f)"))
    assert "c++" in terms("C++ templates")


def test_politeness_and_scaffolding_leave_the_web_query() -> None:
    query = search_query("Hello, could you please tell me what the boiling point of water is on Mount Everest?")
    assert query == "boiling point water Mount Everest"


def test_words_that_tell_a_person_a_place_or_a_choice_stay_in_the_web_query() -> None:
    assert search_query("Which ferry goes to Bamburgh?") == "Which ferry Bamburgh"
    assert search_query("Welche Fähre fährt nach Bamburgh?") == "Welche Fähre fährt Bamburgh"
    assert search_query("Quelle est la ville de Curie ?") == "Quelle ville Curie"


def test_quoted_phrases_numbers_and_identifiers_stay() -> None:
    query = search_query('why does asyncio.to_thread fail with "event loop is closed" in Python 3.11')
    assert '"event loop is closed"' in query
    assert "asyncio.to_thread" in query
    assert "3.11" in query


def test_engine_operators_lose_their_mark() -> None:
    assert search_query("!wp -site :zh insulin") == "wp site zh insulin"


def test_a_long_prompt_is_condensed_around_its_question() -> None:
    story = "I have a long story to tell about my garden and my neighbours. " * 40
    query = search_query(f"{story} How often should I water Dahlia Pinnata in July 2024? {story}")
    assert {"Dahlia", "Pinnata", "July", "2024", "water"} <= set(query.split())


def test_a_query_of_function_words_is_searched_unchanged() -> None:
    assert search_query("to be or not to be") == "to be or not to be"


@given(st.text(max_size=2000).filter(lambda text: text.replace("\0", " ").strip()))
def test_a_web_query_is_never_empty_and_never_long(question: str) -> None:
    query = search_query(question)
    assert query.strip()
    assert len(query) <= 200


def test_a_prompt_of_32_000_characters_is_read_in_linear_time() -> None:
    for hostile in ('"' * 32_000, "a" * 32_000, "a-" * 16_000, "“a" * 16_000, "?" * 32_000, "A " * 16_000):
        assert len(search_query(hostile)) <= 200
        keywords_of(hostile)
        terms(hostile)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("water used in january 2023", "month: 2023-01"),
        ("Wasser im Januar 2023", "Jan 2023"),
        ("what was cut on 7.2.2023", "tue 7 feb. hedge cut"),
        ("taille du 2023-02-07", "taille le 7 février 2023"),
        ("cut on February 7th", "am 07.02. geschnitten."),
    ],
)
def test_a_question_looks_for_the_other_forms_of_its_dates(question: str, text: str) -> None:
    looked_for, stored = (set(re.findall(r"\w+", found)) for found in (asked_words(question), searched_words(text)))
    assert stored - looked_for <= {"month", "tue", "hedg", "cut", "le", "geschnitten", "geschnitt", "taill"}


def test_a_question_without_a_date_looks_for_its_own_words() -> None:
    question = "May I march with 12 boats?"
    assert asked_words(question) == searched_words(question)
