"""A passage has the date of what it quotes."""

from datetime import date
from typing import Any

import pytest

from cragside.domain.dating import date_of
from cragside.domain.indexing import DocumentRecord, Passage

TODAY = date(2026, 6, 1)


def dated(
    text: str = "Boats are painted.", *, name: str = "boats.md", index: int = 0, section: str = "", **facts: Any
) -> str | None:
    known = {"title": "Boats", "file_type": "md", "doc_type": "text", "beginning": text, **facts}
    record = DocumentRecord(
        id="d",
        name=name,
        content_hash="h",
        size=1,
        characters=1,
        created_at="2026-01-01",
        updated_at="2026-01-01",
        **known,
    )
    return date_of(record, Passage("p", "d", 0, index, text, section=section), TODAY)


@pytest.mark.parametrize(
    ("beginning", "expected"),
    [
        ("# Committee, minutes of 10 March 2025\n\nThe next meeting is on 12 May 2025.", "2025-03-10"),
        ("Handbuch des Vereins\nStand: Januar 2024. Das Handbuch ergänzt die Satzung von 1998.", "2024-01"),
        ("# Prices\n\nAll prices net. Valid from 1 January 2025. Replaces the list of 2024.", "2025-01-01"),
        ("Betriebskosten\n\nMieterin Brandt. Norderholm, 18. April 2024. Verteilung nach Fläche.", "2024-04-18"),
        ("Règlement du camping\n\nEn vigueur depuis le 1er avril 2022\n", "2022-04-01"),
        ("Compte rendu de la réunion du 4 mai 2023\n\nPrésents : Luc.", "2023-05-04"),
        ("Annual meeting\n\nThursday, 14 March 2024, clubhouse, 19:30.", "2024-03-14"),
        ("Offer\n\nValid until 31 December 2025.", None),
        ("The storm of 3 May 2021 broke the jetty, says everybody who was there.\n\nUpdated: March 2022", "2022-03"),
        ("The jetty was broken when the storm of 1987 came.\nIt was mended in 1991.", "1987"),
        ("Boats are painted.\nThe last time was in 1991.", None),
    ],
)  # fmt: skip
def test_a_document_says_in_its_first_lines_of_when_it_is(beginning: str, expected: str | None) -> None:
    assert dated(beginning) == expected


def test_the_most_trusted_date_counts() -> None:
    facts: dict[str, Any] = {"tier1": {"createdDate": "2020-05-05T10:00:00Z"}, "title": "Boats"}
    assert dated(**facts) == "2020-05-05"
    assert dated(**facts, name="boats-2021.md") == "2021"
    assert dated("Boats\nUpdated: 3 May 2022\n", **facts, name="boats-2021.md") == "2022-05-03"
    assert dated("Updated: 3 May 2022\n", metadata={"Date": "2023-02-01"}, name="boats-2021.md") == "2023-02-01"
    assert dated(metadata={"date": 2024}) == "2024"
    assert dated("From: a\nDate: x", tier1={"date": "2025-05-20T18:30:00+02:00"}, name="2024.eml") == "2025-05-20"


@pytest.mark.parametrize("claimed", ["2031-01-01", "1850-01-01", "yesterday"])
def test_a_date_that_cannot_be_counts_as_unknown(claimed: str) -> None:
    assert dated(metadata={"date": claimed}) is None
    assert dated(metadata={"date": claimed}, name="boats-2021.md") == "2021"


def test_all_passages_of_a_document_have_the_date_of_its_beginning() -> None:
    assert dated("Kelp grows.", index=7, beginning="Minutes of 10 March 2025") == "2025-03-10"


def test_tables_and_code_name_dates_of_other_things() -> None:
    assert dated("date: 2025-01-03; boat: Petrel", file_type="csv") is None
    assert dated("# Updated: 2025-01-03\n", file_type="py", doc_type="code") is None


def test_an_entry_of_a_log_has_its_own_date() -> None:
    log = "10.03.2025 oil changed\n12.03.2025 belt changed"
    assert dated(log, name="machine-log.txt", beginning="MACHINE LOG\n03.01.2025 knives") == "2025-03-12"
    assert dated("Oil changed.", section="Log > 12 March 2025: oil", name="a.md") == "2025-03-12"
    assert dated(log, name="timetable-2024.txt", beginning="Events\n") == "2024"


def test_the_time_of_a_templates_making_says_nothing() -> None:
    assert dated(tier1={"createdDate": "2013-12-23T23:15:00+00:00"}) is None
