"""Notes on a question in another language than the documents."""

import pytest

from cragside.domain.languages import Languages, crosses_languages, foreign_question, languages_of


def test_a_question_in_another_language_is_told_with_the_languages_and_the_way_out() -> None:
    reason = foreign_question("fr", {"en": 90, "de": 20, "fy": 1, "": 30})
    assert reason.startswith("The question is in French, the documents are in English and German.")
    assert "RAG_EMBEDDING_MODEL=bge-m3" in reason


def test_documents_in_further_languages_are_told() -> None:
    told = "The question is in German, some documents are in English."
    assert foreign_question("de", {"en": 1000, "de": 1}).startswith(told)
    assert foreign_question("de", {"en": 3, "de": 9}).startswith(told)


@pytest.mark.parametrize(
    ("question", "passages"),
    [
        (None, {"en": 10}),
        ("en", {"en": 10}),
        ("de", {}),
        ("de", {"": 10}),
        ("de", {"en": 4, "": 6}),
        ("de", {"en": 9, None: 1}),
    ],
)
def test_where_it_is_not_sure_nothing_is_said(question: str | None, passages: Languages) -> None:
    assert foreign_question(question, passages) == ""


def test_a_language_that_is_rarely_met_is_no_language_of_the_documents() -> None:
    assert languages_of({"en": 5, "de": 90, "gd": 1, "": 500}) == ["German", "English"]
    assert languages_of({"xx": 1}) == ["xx"]


def test_only_the_embedded_model_is_known_to_stay_within_a_language() -> None:
    assert not crosses_languages("wordllama-256")
    assert crosses_languages("bge-m3:latest")
