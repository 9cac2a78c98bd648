"""What is stored as JSON comes back as it was."""

import math

import pytest

from cragside.adapters.lightrag.ledger.entries import json_of, parsed, parsed_metadata


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
