"""Rules annotate passages and documents with quotations, and invent nothing."""

import os
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cragside.adapters.embedded.annotator import EmbeddedAnnotator
from cragside.adapters.embedded.extraction import extract, names_in
from cragside.domain.document import DocType
from tests.programs import output_of

TIERS_3 = {
    "code": {"summary", "purpose", "complexity"},
    "email": {"urgency", "intent", "action_items", "summary"},
    "meeting": {"decisions", "action_items", "topic_segments"},
    "slack": {"summary", "decisions", "action_items", "sentiment"},
    "article": {"summary", "takeaways", "tags", "target_audience"},
    "pdf": {"summary", "key_entities", "sections"},
    "image": {"description", "detected_objects", "ocr_text", "image_type"},
    "text": {"summary", "key_entities"},
}
OTTERS = (
    "# Sea otters\n\nThe sea otter lives along the coasts of the northern Pacific. Sea otters eat sea urchins, and\n"
    "sea urchins eat kelp. William Healey Dall wrote about the otters of Alaska in 1870. It rained in the end.\n"
    "Where sea otters were hunted, sea urchins ate the kelp forests of Alaska bare.\n"
)


@pytest.fixture(scope="module")
def annotator() -> EmbeddedAnnotator:
    return EmbeddedAnnotator()


def test_tier_2_has_entities_with_labels_at_most_ten_keywords_and_the_language(annotator: EmbeddedAnnotator) -> None:
    tier2 = annotator.tier2(OTTERS)
    assert set(tier2) == {"entities", "keywords", "language"}
    assert {"text": "William Healey Dall", "label": "Person"} in tier2["entities"]
    assert all(set(entity) == {"text", "label"} for entity in tier2["entities"])
    assert len(tier2["keywords"]) == 10
    assert {"otters", "urchins"} <= {word.lower().split()[-1] for word in tier2["keywords"][:4]}
    assert tier2["language"] == "en"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Die Katze schläft den ganzen Tag auf der warmen Matte vor dem Ofen.", "de"),
        ("Le chat dort toute la journée sur le tapis devant la cheminée.", "fr"),
        ("これは日本語で書かれた短い文章です。", "ja"),
        ("OK", None),
        ("", None),
        ("12345 67890 ---", None),
    ],
)
def test_the_language_is_iso_639_1_or_none_if_unknown(
    annotator: EmbeddedAnnotator, text: str, code: str | None
) -> None:
    assert annotator.tier2(text)["language"] == code


@pytest.mark.parametrize("doc_type", get_args(DocType))
async def test_tier_3_has_only_the_fields_of_its_type_and_names_its_method(
    annotator: EmbeddedAnnotator, doc_type: Any
) -> None:
    text = f"{OTTERS}\nWe decided to count them. Please count them urgently."
    found = await annotator.tier3(doc_type, text)
    assert found["by"] == "embedded"
    assert set(found) - {"by"} <= TIERS_3[doc_type]
    assert all(found.values())


async def test_a_summary_is_made_of_the_texts_own_sentences_in_their_order(annotator: EmbeddedAnnotator) -> None:
    summary = (await annotator.tier3("text", OTTERS))["summary"]
    flat = " ".join(OTTERS.split())
    assert summary.startswith("The sea otter lives along the coasts of the northern Pacific.")
    assert "rained" not in summary
    places = [flat.index(sentence) for sentence in summary.replace(". ", ".|").split("|")]
    assert len(places) == 3
    assert places == sorted(places)


async def test_fields_that_need_understanding_are_left_out(annotator: EmbeddedAnnotator) -> None:
    mail = "Subject: report\n\nHi Bob, the numbers of the last quarter are in the annex of this message."
    assert set(await annotator.tier3("email", mail)) == {"summary", "by"}
    assert set(await annotator.tier3("slack", "ann: the build is green again, nothing to do today")) <= {
        "summary",
        "by",
    }
    assert await annotator.tier3("code", "x = 1\n") == {"by": "embedded"}


async def test_a_mail_that_calls_itself_urgent_is_urgent_and_its_header_is_no_summary(
    annotator: EmbeddedAnnotator,
) -> None:
    mail = (
        "From: a@example.org\nX-Priority: 1\nSubject: numbers\n\nPlease send the report of the quarter by Friday noon."
    )
    found = await annotator.tier3("email", mail)
    assert found["urgency"] == "high"
    assert found["action_items"] == ["Please send the report of the quarter by Friday noon."]
    assert "example.org" not in found["summary"]


async def test_a_meetings_decisions_tasks_and_topics_are_quoted(annotator: EmbeddedAnnotator) -> None:
    notes = (
        "# Budget\nWe agreed to wait until May. Rain was heard.\n- [ ] Ann writes\n# Umzug\nBeschlossen: kein Umzug."
    )
    found = await annotator.tier3("meeting", notes)
    assert found["decisions"] == ["We agreed to wait until May.", "Beschlossen: kein Umzug."]
    assert found["action_items"] == ["[ ] Ann writes"]
    assert found["topic_segments"] == ["Budget", "Umzug"]


@pytest.mark.parametrize(
    "code",
    [
        '"""Counts the otters of a bay."""\nimport os\n',
        "#!/bin/sh\n# Counts the otters of a bay.\nls\n",
        "/**\n * Counts the otters of a bay.\n */\nclass Bay {}\n",
        "// Counts the otters of a bay.\npackage bay\n",
    ],
)
async def test_code_is_summarised_by_its_own_comments(annotator: EmbeddedAnnotator, code: str) -> None:
    assert (await annotator.tier3("code", code))["summary"] == "Counts the otters of a bay."


async def test_only_the_first_8000_characters_are_read(annotator: EmbeddedAnnotator) -> None:
    assert (await annotator.tier3("pdf", f"{'word ' * 1700}\n# Too late\n")).get("sections") is None


@given(st.text(max_size=300), st.sampled_from(get_args(DocType)))
async def test_any_text_can_be_annotated(text: str, doc_type: Any) -> None:
    annotator = EmbeddedAnnotator()
    assert len(annotator.tier2(text)["keywords"]) <= 10
    assert (await annotator.tier3(doc_type, text))["by"] == "embedded"


def test_the_language_detector_is_loaded_at_its_first_use() -> None:
    script = "import cragside.adapters.embedded.annotator, sys; print('gcld3' in sys.modules)"
    assert output_of(script) == "False\n"


def test_a_text_gets_the_same_keywords_in_each_process() -> None:
    script = (
        "from cragside.adapters.embedded.annotator import EmbeddedAnnotator\n"
        f"print(EmbeddedAnnotator().tier2({'Chapel roof. Chapel. Roof.'!r})['keywords'])"
    )
    told = {output_of(script, env=os.environ | {"PYTHONHASHSEED": str(seed)}) for seed in range(4)}
    assert len(told) == 1


@given(st.text())
def test_the_names_of_a_text_are_those_of_its_entities(text: str) -> None:
    for each in (text, f"{OTTERS}{text}"):
        assert names_in(each) == [entity.name for entity in extract(each)[0]]
