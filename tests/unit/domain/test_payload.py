"""The payload of a passage: what we say of it, and what its client says of it."""

from dataclasses import replace

import pytest

from cragside.domain.indexing import Part, Passage, payload_of
from tests.libraries import record

PASSAGE = Passage("p", "doc-1", 0, 0, "text")


def test_the_clients_metadata_is_in_the_payload() -> None:
    assert payload_of(replace(record(), metadata={"team": "x"}), PASSAGE)["team"] == "x"


@pytest.mark.parametrize(
    "name", ["pageNumber", "section", "sections", "tier1", "tier2", "tier3", "text", "source", "documentId"]
)
def test_the_clients_metadata_cannot_replace_reserved_fields(name: str) -> None:
    plain = record()
    claimed = replace(plain, metadata={name: "forged"})
    assert payload_of(claimed, PASSAGE) == payload_of(plain, PASSAGE)


def test_every_field_of_ours_is_reserved() -> None:
    full = replace(PASSAGE, page=3, section="Lamps", sections=("Lamps",), tier2={"keywords": []})
    document = replace(record(), parts=(Part(0, 0, 0, tier3={"summary": "s"}),))
    ours = payload_of(document, full)
    forged = replace(document, metadata=dict.fromkeys(ours, "forged"))
    assert payload_of(forged, PASSAGE) == payload_of(document, PASSAGE)
    assert payload_of(forged, full) == ours
