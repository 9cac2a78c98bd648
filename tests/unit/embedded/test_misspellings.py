"""A misspelt word may stand for those that differ by one slip of the keyboard."""

import pytest

from cragside.adapters.embedded.names import meant


@pytest.mark.parametrize(
    ("typed", "word"),
    [
        ("batery", "battery"),
        ("batttery", "battery"),
        ("windwo", "window"),
        ("abttery", "battery"),
        ("hospitel", "hospital"),
        ("paper", "papers"),
        ("kuehlschrank", "kühlschrank"),
    ],
)
def test_a_slip_leaves_out_doubles_changes_or_swaps_letters(typed: str, word: str) -> None:
    assert word in meant(typed)
    assert typed not in meant(typed)


@pytest.mark.parametrize("other", ["mattery", "battle", "bat", "battreies"])
def test_a_word_that_differs_more_or_in_its_first_letter_is_another_one(other: str) -> None:
    assert other not in meant("battery")


def test_a_word_that_is_too_long_stands_for_no_other() -> None:
    assert len(meant("letter" * 10_000)) == 0


def test_a_short_word_is_near_to_others_only_from_the_length_that_is_given() -> None:
    assert list(meant("bota")) == []
    assert "boat" in meant("bota", shortest=4)
    assert "beta" not in meant("bota", shortest=4)
    assert "beta" in meant("bota", shortest=3)
