"""Search by words finds what BM25 over all words of a question ranks best, and ranks few passages for it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import corpus
from benchmarks.words import WordSearch, recall
from cragside.store.ranking import Sought, sought
from evals.lookalike_reports import questions, reports

SIZE = 1_500


def lookalikes() -> tuple[list[str], list[str]]:
    made = reports(SIZE)
    return [report.text for report in made], [question for question, _ in questions(made, 40)]


def prose() -> tuple[list[str], list[str]]:
    return [passage.text for passage in corpus.passages(SIZE)], corpus.questions(SIZE, 40)


@pytest.mark.parametrize("passages", [lookalikes, prose])
async def test_the_first_ten_are_those_of_all_words(
    tmp_path: Path, passages: Callable[[], tuple[list[str], list[str]]]
) -> None:
    texts, asked = passages()
    async with WordSearch.opened(tmp_path, texts) as search:
        shares = [recall(search.found(question), search.by_all(question, SIZE)) for question in asked]
    assert sum(shares) / len(shares) >= 0.98


async def test_the_report_that_is_asked_for_comes_first_though_each_word_is_common(tmp_path: Path) -> None:
    made = reports(SIZE)
    asked = questions(made, 30)
    async with WordSearch.opened(tmp_path, [report.text for report in made]) as search:
        first = [next(iter(search.found(question))) for question, _ in asked]
    # Rows are numbered from 1.
    assert sum(seq == number + 1 for seq, (_, number) in zip(first, asked, strict=True)) >= 29


async def test_the_counts_of_words_follow_what_is_written(tmp_path: Path) -> None:
    async with WordSearch.opened(tmp_path, ["the pump leaks"] * 250) as search:
        assert search.spread(["pump", "motor"]) == {"pump": 250}
        search.add(["the motor leaks"] * 3)
        assert search.spread(["pump", "motor"]) == {"pump": 250, "motor": 3}


def test_a_word_in_more_than_half_of_the_passages_does_not_count() -> None:
    assert sought(["report", "pump"], {"report": 900, "pump": 40}, 1_000, 30).words == ["pump"]


def test_the_rarest_of_such_words_counts_if_there_is_no_other() -> None:
    assert sought(["report", "pump"], {"report": 900, "pump": 800}, 1_000, 30) == Sought(["pump"], ["pump"], [])


def test_of_commoner_words_a_passage_needs_two() -> None:
    spread = {"a": 100, "b": 150, "c": 160, "d": 170}
    found = sought(list("dcba"), spread, 1_000, 30)
    assert found == Sought(list("abcd"), ["a"], [("b", ["c", "d"]), ("c", ["d"])])


def test_two_words_that_weigh_little_beside_a_rare_one_do_not_count() -> None:
    found = sought(list("abc"), {"a": 10, "b": 400, "c": 450}, 1_000, 10)
    assert found == Sought(list("abc"), ["a"], [])


def test_a_word_is_rare_while_too_few_passages_have_rarer_ones() -> None:
    assert sought(list("abc"), {"a": 3, "b": 300, "c": 310}, 1_000, 30).rare == ["a", "b"]


def test_a_word_that_no_count_knows_is_rare() -> None:
    assert sought(["a", "b"], {}, 100, 30) == Sought(["a", "b"], ["a", "b"], [])
