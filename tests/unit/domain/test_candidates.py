"""Fate of each candidate."""

from cragside.domain.evidence import Document
from cragside.domain.outcome import considered
from cragside.domain.verdict import Judgement


def document(identifier: str, score: float, source: str = "local") -> Document:
    return Document(identifier, "text", source, score=score)  # type: ignore[arg-type]


def test_each_candidate_is_kept_or_says_why_not() -> None:
    local = [document("a", 0.9), document("b", 0.8), document("c", 0.7), document("d", 0.6)]
    web = [document("w", 0.06, "web"), document("x", 0.05, "web")]
    found = considered(
        local,
        web,
        graders=("rerank", "embedded"),
        judgements={"a": (judged := Judgement("m", 0.8, 0.5))},
        needed=(0.6, 0.05),
        best=[local[0], local[1], web[0]],
        packed=local[:1],
    )
    assert [each.judgement for each in found] == [judged, None, None, None, None, None]
    assert [(each.document.id, each.number, each.dropped, each.grader, each.needed) for each in found] == [
        ("a", 1, None, "rerank", 0.6),
        ("b", None, "room", "rerank", 0.6),
        ("c", None, "limit", "rerank", 0.6),
        ("d", None, "score", "rerank", 0.6),
        ("w", None, "room", "embedded", 0.05),
        ("x", None, "score", "embedded", 0.05),
    ]
