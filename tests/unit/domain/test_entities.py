import pytest

from cragside.domain.document import SourceText
from cragside.domain.errors import ValidationError
from cragside.domain.evidence import Document
from cragside.domain.query import Query, ask


def test_a_document_holds_its_grade_as_a_new_document() -> None:
    document = Document("d1", "Kelp grows fast.", "local")
    assert document.score is None
    assert document.graded(0.7).score == 0.7


@pytest.mark.parametrize("score", [-0.01, 1.01, float("nan"), float("inf")])
def test_a_score_outside_zero_to_one_is_refused(score: float) -> None:
    with pytest.raises(ValidationError, match="score"):
        Document("d1", "Kelp", "local", score=score)


@pytest.mark.parametrize(
    ("identifier", "content", "source"), [("", "x", "local"), ("d", " \n", "web"), ("d", "x", "disk")]
)
def test_a_document_without_id_content_or_known_source_is_refused(identifier: str, content: str, source: str) -> None:
    with pytest.raises(ValidationError):
        Document(identifier, content, source)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "text"), [("", "x"), ("a.md", "  "), ("a.md", "")])
def test_a_source_needs_a_name_and_text(name: str, text: str) -> None:
    with pytest.raises(ValidationError):
        SourceText(name, text)


def test_a_query_needs_an_id_and_a_question() -> None:
    assert Query("q1", "what?").created_at.tzinfo is not None
    with pytest.raises(ValidationError, match="id"):
        Query("", "what?")
    with pytest.raises(ValidationError, match="question"):
        Query("q1", "  ")


def test_a_question_may_be_as_long_as_the_limit_and_no_longer() -> None:
    assert ask("q", "x" * 10, workspace="w", limit=10).workspace == "w"
    with pytest.raises(ValidationError, match="11 characters; the limit is 10"):
        ask("q", "x" * 11, workspace="w", limit=10)
