"""Dates are read as people write them, and as exactly as they are known."""

import pytest

from cragside.domain.moments import Moment, moment_in, moments_in


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2025-03-11T10:00:00+02:00", "2025-03-11"),
        ("minutes_20250311", "2025-03-11"),
        ("11.03.2025", "2025-03-11"),
        ("11.03.25", "2025-03-11"),
        ("11-Mar-2025", "2025-03-11"),
        ("11 March 2025", "2025-03-11"),
        ("the 11th of March 2025", "2025-03-11"),
        ("March 11th, 2025", "2025-03-11"),
        ("12.–14. Mai 2025", "2025-05-14"),
        ("1. März 2025", "2025-03-01"),
        ("le 1er février 2025", "2025-02-01"),
        ("31/03/2025", "2025-03-31"),
        ("03/31/2025", "2025-03-31"),
        ("du 03/04/2025", "2025-04-03"),
        ("03/04/2025", "2025"),
        ("Stand: Januar 2024", "2024-01"),
        ("août 2024", "2024-08"),
        ("2025-03", "2025-03"),
        ("notes-march-2025", "2025-03"),
        ("price-list-2024", "2024"),
        ("2023-2025", "2025"),
        ("2024/25", "2025"),
    ],
)
def test_a_date_is_read_as_exactly_as_it_is_written(text: str, moment: str) -> None:
    assert str(moment_in(text)) == moment


@pytest.mark.parametrize(
    "text", ["", "30.02.2025", "version 3.11.4", "v1.2.2025", "job 25-014", "2,025 euros", "PT2025x"]
)
def test_other_numbers_are_no_dates(text: str) -> None:
    assert moment_in(text) is None


def test_all_dates_are_found_in_their_order() -> None:
    found = [str(moment) for moment, _ in moments_in("From 3 May 2021, changed on 2022-07-01 and in 2024.")]
    assert found == ["2021-05-03", "2022-07-01", "2024"]


def test_a_moment_is_after_another_only_if_that_is_sure() -> None:
    assert Moment(2025, 3).is_after(Moment(2025, 2, 28))
    assert not Moment(2025).is_after(Moment(2025, 1))
    assert Moment(2024, 2).last.day == 29
