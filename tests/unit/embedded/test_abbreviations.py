"""Texts explain abbreviations."""

import pytest

from cragside.adapters.embedded.spelling import abbreviations_in, explain
from cragside.domain.reading import Reading, ReadWord
from tests.bounds import read_within

EXPLAINED = "A personal flotation device (PFD) has to be worn. (WL = Wettfahrtleiter)"


@pytest.mark.parametrize(
    ("text", "short", "long"),
    [
        ("A personal flotation device (PFD) has to be worn.", "PFD", "personal flotation device"),
        ("Bring a PFD (personal flotation device).", "PFD", "personal flotation device"),
        ("OOD = officer of the day, the member in charge", "OOD", "officer of the day"),
        ("SOP: standard operating procedure", "SOP", "standard operating procedure"),
        ("The standard operating procedure, short: SOP, is here.", "SOP", "standard operating procedure"),
        ("DTL stands for drop-to-length.", "DTL", "drop-to-length"),
        ("Abbreviation: RT; Meaning: refit time, not billed", "RT", "refit time"),
        ("| RT | refit time |", "RT", "refit time"),
        ("Die Mitgliederversammlung (MV) wählt.", "MV", "Mitgliederversammlung"),
        ("BetrKV steht für Betriebskostenverordnung.", "BetrKV", "Betriebskostenverordnung"),
        ("die allgemeinen Geschäftsbedingungen, kurz AGB, gelten", "AGB", "allgemeinen Geschäftsbedingungen"),
        ("Segelclub Asverbucht e.V. (SCA)", "SCA", "Segelclub Asverbucht"),
        ("la taxe sur la valeur ajoutée (TVA)", "TVA", "taxe sur la valeur ajoutée"),
    ],
)
def test_a_short_form_is_found_with_what_it_stands_for(text: str, short: str, long: str) -> None:
    assert [(each.short, each.long) for each in abbreviations_in(text)] == [(short, long)]


@pytest.mark.parametrize(
    "text",
    [
        "the price (it is fixed)",  # a common word
        "the price (PFD) of it",  # other letters
        "a Sum (SUM)",
        "Johann Sebastian Bach (BJS)",
        "the long and winding road to the old harbour (LH)",  # which words it stands for is not told
        "see PDF (page 3)",
    ],
)
def test_what_is_no_explanation_is_none(text: str) -> None:
    assert abbreviations_in(text) == ()


@pytest.mark.parametrize(
    ("question", "equal"),
    [
        ("what must a PFD have", [ReadWord("PFD", "personal flotation device")]),
        ("what must a pfd have", [ReadWord("pfd", "personal flotation device")]),
        ("price of Personal Flotation Devices", [ReadWord("Personal Flotation Devices", "PFD")]),
        ("wer ist Wettfahrtleiter", [ReadWord("Wettfahrtleiter", "WL")]),
        ("what personal device has to be worn", []),
    ],
)
def test_both_forms_of_an_explained_abbreviation_are_equal(question: str, equal: list[ReadWord]) -> None:
    assert list(explain(Reading(question), [EXPLAINED]).equal) == equal


@pytest.mark.parametrize(
    ("question", "planted"),
    [
        ("is it open", "IT (ice tea) is sold."),
        ("which car was sold", "CAR (cash after repair) is paid."),
        ("wann war die Reise", "WAR (Wettfahrt am Rhein) ist im Mai."),
        ("what does insurance cost", "IRE = Insurance"),
        ("ist die Kasse voll", "KSE = Kasse"),
    ],
)
def test_common_words_are_not_redirected(question: str, planted: str) -> None:
    assert explain(Reading(question), [planted]).equal == ()


def test_a_passage_is_asked_with_its_own_form() -> None:
    reading = explain(Reading("what must a PFD have"), [EXPLAINED])
    assert reading.others == [reading.asked_of("Each personal flotation device has 50 N.")]
    assert reading.others == ["what must a personal flotation device have"]
    assert reading.asked_of(EXPLAINED) == reading.asked_of("The PFDs are dry.") == reading.text
    long = explain(Reading("what must a personal flotation device have"), [EXPLAINED])
    assert long.asked_of("The PFD has 50 N.") == "what must a PFD have"


def test_an_abbreviation_that_documents_explain_otherwise_has_each_meaning() -> None:
    planted = "The PFD (petty finance document). PFD = petty finance document."
    reading = explain(Reading("where does the PFD hang"), [planted, EXPLAINED])
    assert reading.others == [
        "where does the petty finance document hang",
        "where does the personal flotation device hang",
    ]
    honest = "The personal flotation device hangs in locker 4."
    assert reading.asked_of(honest) == "where does the personal flotation device hang"


def test_only_whole_words_are_replaced() -> None:
    equal = (ReadWord("RT", "refit time"), ReadWord("TT", "travel time"), ReadWord("XX", "there is none"))
    others = Reading("are RTT and START or RT and TT", equal=equal).others
    assert others == ["are RTT and START or refit time and travel time"]


@pytest.mark.parametrize("text", ["A (AB", "AB (" * 2, "(AB)", "a b ", "AB = ", "AB|", "A", ", short: AB", "AB;a:"])
def test_a_text_of_any_length_is_read_in_time(text: str) -> None:
    read_within(2.0, abbreviations_in, lambda length: text * (length // len(text)))
