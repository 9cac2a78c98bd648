"""The judge tells if a passage supports a sentence."""

import pytest

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.adapters.embedded.support import EmbeddedSupportJudge

JUDGE = EmbeddedSupportJudge(WordLlamaEmbedder())
TITLE = "Cragside"
TEXT = (
    "Cragside, a country house near Rothbury in Northumberland, was built for William Armstrong between 1863 and 1884. "
    "It was the first house in the world that was lit by hydroelectricity. In 1880 Joseph Swan installed 45 of his "
    "lamps, and on 3 May a lift was started."
)


@pytest.mark.parametrize(
    "sentence",
    [
        "It was the first house in the world that was lit by hydroelectricity.",
        "Cragside was the world's first house to be lit with hydroelectricity.",
        "Joseph Swan's 45 lamps were installed in 1880.",
        "The house of William Armstrong stands near Rothbury, in Northumberland.",
        "A lift started on May 3rd.",
    ],
)
def test_what_a_passage_says_in_its_own_or_in_other_words_is_supported(sentence: str) -> None:
    support = JUDGE.judge(sentence, title=TITLE, text=TEXT)
    assert support.supported, support
    assert 0.7 <= support.score <= 1


@pytest.mark.parametrize(
    "sentence",
    [
        "Joseph Swan's 46 lamps were installed in 1880.",
        "Joseph Swan's 45 lamps were installed in 1890.",
        "A lift started on June 3rd.",
        "Thomas Edison installed 45 of his lamps in 1880.",
        "The house of William Armstrong stands near Alnwick, in Northumberland.",
        "The first house in London that was lit by hydroelectricity was built for William Armstrong.",
    ],
)
def test_another_number_date_or_name_is_not_supported_however_alike_the_rest_is(sentence: str) -> None:
    support = JUDGE.judge(sentence, title=TITLE, text=TEXT)
    assert not support.supported, support


@pytest.mark.parametrize("sentence", ["Otters hold hands while they sleep in the kelp.", "", "...", "[1]"])
def test_what_a_passage_does_not_say_is_not_supported(sentence: str) -> None:
    assert not JUDGE.judge(sentence, title=TITLE, text=TEXT).supported


def test_an_empty_passage_supports_nothing() -> None:
    assert not JUDGE.judge("The lamp is lit.", title="", text="").supported


def test_german_sentences_are_judged_by_words_and_numbers() -> None:
    text = "Der Wärter zündet die Lampe des Hafens um 19 Uhr an. Im Winter beginnt er früher."
    assert JUDGE.judge("Die Lampe des Hafens zündet der Wärter um 19 Uhr an.", title="", text=text).supported
    assert not JUDGE.judge("Die Lampe des Hafens zündet der Wärter um 20 Uhr an.", title="", text=text).supported
