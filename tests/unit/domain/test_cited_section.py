"""Citation of the section of a passage."""

import pytest

from cragside.domain.document import cited_section


@pytest.mark.parametrize(
    ("sections", "cited"),
    [
        ([], ""),
        (["Lamps"], "Lamps"),
        (["Introduction", "Operation", "Maintenance"], "Introduction – Maintenance"),
        (["Pumps > Use", "Pumps > Care"], "Pumps > Use – Care"),
        (["Pumps", "Pumps > Care > Grease"], "Pumps – Care > Grease"),
        (["Pumps > Care", "Pumps"], "Pumps > Care – Pumps"),
        (["Pumps > Care", "Lamps > Care"], "Pumps > Care – Lamps > Care"),
        (["Notes", "Notes"], "Notes"),
        (["start", "", "stop"], "start – stop"),
        (["start", ""], "start"),
        (["", "Introduction"], ""),
    ],
)
def test_a_citation_reaches_from_the_first_section_to_the_last(sections: list[str], cited: str) -> None:
    assert cited_section(sections) == cited
