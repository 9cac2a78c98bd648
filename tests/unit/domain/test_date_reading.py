"""Dates are read as people write them, and as exactly as they are known."""

import pytest

from cragside.domain.dates import MONTHS, Period, dates_in, time_in, times_in


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2025-03-11T10:00:00+02:00", "2025-03-11"),
        ("minutes_20250311", "2025-03-11"),
        ("11.03.2025", "2025-03-11"),
        ("11.03.25", "2025-03-11"),
        ("Protokoll vom 5.3.2025.docx", "2025-03-05"),
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
        ("2025-3", "2025-03"),
        ("2025/03", "2025-03"),
        ("2025_03", "2025-03"),
        ("2025-3-4", "2025-03-04"),
        ("2025/3/4", "2025-03-04"),
        ("IMG_20250311_143000.jpg", "2025-03-11"),
        ("tide_10_march_2025.pdf", "2025-03-10"),
        ("tide-10-March-2025.pdf", "2025-03-10"),
        ("march-10-2025", "2025-03-10"),
        ("11-mar-25", "2025-03-11"),
        ("2025-mar-11", "2025-03-11"),
        ("2025-march-notes", "2025-03"),
        ("11. 3. 2025", "2025-03-11"),
        ("march '25", "2025-03"),
        ("Mar-25", "2025-03"),
        ("Mar 25", "2025-03"),
        ("Strom, März 25", "2025-03"),
        ("factures mai 24", "2024-05"),
        ("7 feb 25", "2025-02-07"),
        ("12 May 1887", "1887-05-12"),
        ("May 1887", "1887-05"),
        ("notes-march-2025", "2025-03"),
        ("price-list-2024", "2024"),
        ("invoice RE-2024-117", "2024"),
        ("2023-2025", "2025"),
        ("2024/25", "2025"),
        ("2024/2025", "2025"),
        ("2011/12", "2012"),
        ("2011/10", "2011-10"),
    ],
)
def test_a_date_is_read_as_exactly_as_it_is_written(text: str, time: str) -> None:
    assert str(time_in(text)) == time


@pytest.mark.parametrize(
    "text",
    [
        *("", "30.02.2025", "31.04.2025", "version 3.11.4", "version 1.2.25"),
        *("v1.2.2025", "job 25-014", "2,025 euros", "PT2025x", "March 25", "on Mar 25", "5 May -20 degrees"),
        *("120250311", "20251311", "11.3.", "in May 25 boats came", "5 May-10 May"),
    ],
)
def test_other_numbers_are_no_dates(text: str) -> None:
    assert time_in(text) is None


@pytest.mark.parametrize("name", MONTHS)
def test_every_name_of_a_month_is_read(name: str) -> None:
    [found] = dates_in(f"am 5. {name} 2024")
    assert found.periods == (Period.of(2024, MONTHS[name], 5),)


@pytest.mark.parametrize(
    "text", ["30.2.", "am 31.4.", "30 February", "31. November", "31/9/2024", "29 Feb 2023", "2025-02-29"]
)
def test_a_day_that_no_calendar_has_is_no_date(text: str) -> None:
    assert dates_in(text.lower()) == []


def test_a_day_of_a_leap_year_is_one_if_its_year_may_be_one() -> None:
    assert [str(period) for _, _, (period,) in dates_in("29 feb 2024, 29.2.")] == ["2024-02-29", "0000-02-29"]


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("3 june 2024 june 4", [2024, None]),
        ("in 2025 may members vote", []),
        ("5 may-10 may", [None]),
        ("du 03/04/2025", [2025]),
        ("on 03/04/2025", [2025, 2025]),
        ("electricity mar 25", [None, 2025]),
        ("strom märz 25", [2025]),
        ("on mar 25", [None]),
        ("the winter 2003-4 was cold", []),
        ("month: 2003-4; litres: 12", [2003]),
        ("il y a dix-sept ans", []),
        ("(4 july 1875 - 21 october 1970)", [1875, 1970]),
        ("open from 1 may 1921 to 30 april 1954", [1921]),
        ("lease from 1 may 2021 to 30 april 2024", [2021]),
        ("mar 3 - mar 28", [None]),
    ],
)
def test_a_number_belongs_to_the_date_that_it_is_written_with(text: str, years: list[int | None]) -> None:
    assert [period.year for date in dates_in(text) for period in date.periods] == years


def test_all_dates_are_found_in_their_order() -> None:
    found = [str(time) for _, _, (time,) in times_in("from 3 may 2021, changed on 2022-07-01 and in 2024.")]
    assert found == ["2021-05-03", "2022-07-01", "2024"]


def test_a_period_is_after_another_only_if_that_is_sure() -> None:
    assert Period.of(2025, 3).is_after(Period.of(2025, 2, 28))
    assert not Period.of(2025).is_after(Period.of(2025, 1))
    assert not Period.of(2025, 3, 11).is_after(Period.of(2025, 3, 11))
