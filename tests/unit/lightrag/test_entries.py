"""Values stored as JSON come back unchanged."""

import math

import pytest

from cragside.store.chunking import json_of, parsed, parsed_metadata, searched_text


@pytest.mark.parametrize(
    "value", [{}, {"a": "é\n", "b": [1, None, True, 2.5]}, {"half": "\ud800"}, {"deep": {"er": {}}}]
)
def test_facts_survive_storage(value: dict[str, object]) -> None:
    assert parsed(json_of(value)) == value


def test_a_fact_that_is_not_a_number_is_read_back() -> None:
    assert math.isnan(parsed(json_of({"a": math.nan}))["a"])


@pytest.mark.parametrize("value", [{}, {"big": 12345678901234567890123}, {"half": "\ud800"}, {"a": [{}]}])
def test_metadata_survive_storage(value: dict[str, object]) -> None:
    assert parsed_metadata(json_of(value)) == value


@pytest.mark.parametrize(
    ("title", "text", "seen"),
    [
        ("Tart", "Bake it.", "Tart\nBake it."),
        ("", "Bake it.", "Bake it."),
        (" \n ", "Bake it.", "Bake it."),
        ("Tart", "# TART\n\nBake it.", "# TART\n\nBake it."),
        ("Tart", "Tart", "Tart"),
        ("Oil", "Oilskins keep dry.", "Oil\nOilskins keep dry."),
        ("Lemon\n  tart", "Bake it.", "Lemon tart\nBake it."),
        ("x" * 10_000, "Bake it.", "x" * 200 + "\nBake it."),
    ],
)
def test_a_passage_is_searched_with_its_title_unless_it_begins_with_it(title: str, text: str, seen: str) -> None:
    assert searched_text(title, text) == seen
