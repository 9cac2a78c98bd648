"""What became of each candidate."""

from cragside.domain.candidates import considered
from cragside.domain.document import Document


def document(identifier: str, score: float, source: str = "local") -> Document:
    return Document(identifier, "text", source, score=score)  # type: ignore[arg-type]


def test_each_candidate_is_kept_or_says_why_not() -> None:
    local = [document("a", 0.9), document("b", 0.8), document("c", 0.7), document("d", 0.6)]
    web = [document("w", 0.06, "web"), document("x", 0.05, "web")]
    found = considered(
        local, web, graders=("m", "embedded"), needed=(0.6, 0.05), best=[local[0], local[1], web[0]], packed=local[:1]
    )
    assert [(each.document.id, each.number, each.dropped, each.grader, each.needed) for each in found] == [
        ("a", 1, None, "m", 0.6),
        ("b", None, "room", "m", 0.6),
        ("c", None, "limit", "m", 0.6),
        ("d", None, "score", "m", 0.6),
        ("w", None, "room", "embedded", 0.05),
        ("x", None, "score", "embedded", 0.05),
    ]
