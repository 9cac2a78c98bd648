"""The embedded detector of languages."""

import pytest

from cragside.adapters.embedded.languages import iso_639_1


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("The lighthouse keeper lit the lamp at dusk.", "en"),
        ("Der Wärter zündet die Lampe in der Dämmerung an.", "de"),
        ("Le gardien allume la lampe au crépuscule.", "fr"),
        ("הדייג חזר אל הנמל בערב עם הסירה", "he"),  # the detector says iw, as ISO 639-1 once did
        ("OK", None),
        ("1234 5678 " * 40, None),
    ],
)
def test_the_language_of_a_text(text: str, code: str | None) -> None:
    assert iso_639_1(text) == code


@pytest.mark.parametrize("text", ["\ud800" * 20 + "The keeper lights the lamp", "The keeper\x00 lights the lamp"])
def test_text_that_utf8_cannot_hold_has_a_language(text: str) -> None:
    assert iso_639_1(text) == "en"
