import pytest

from cragside.domain.evidence import Document
from cragside.domain.verdict import DecisionPolicy, verdict_of


def documents(*scores: float) -> list[Document]:
    return [Document(f"d{i}", "text", "local", score=score) for i, score in enumerate(scores)]


def test_a_score_of_exactly_the_threshold_goes_to_the_web() -> None:
    assert not DecisionPolicy().suffices(documents(0.6))
    assert DecisionPolicy().suffices(documents(0.6000001))


def test_one_passing_document_keeps_the_local_route_whatever_the_mean() -> None:
    assert DecisionPolicy().suffices(documents(0.7, 0.0, 0.0))


def test_with_the_mean_rule_the_mean_has_to_pass_as_well() -> None:
    policy = DecisionPolicy(rule="mean")
    assert not policy.suffices(documents(0.7, 0.0))
    assert not policy.suffices(documents(0.7, 0.5))
    assert policy.suffices(documents(0.9, 0.5))


def test_no_documents_never_suffice() -> None:
    assert not DecisionPolicy(threshold=0).suffices([])
    assert not DecisionPolicy(threshold=0, rule="mean").suffices([])


def test_passing_documents_are_best_first_and_ungraded_ones_are_left_out() -> None:
    ungraded = Document("u", "text", "local")
    assert [d.score for d in DecisionPolicy().passing([*documents(0.7, 0.9, 0.6), ungraded])] == [0.9, 0.7]


def test_best_effort_leaves_out_noise() -> None:
    assert [d.score for d in DecisionPolicy().best_effort(documents(0.1, 0.5, 0.2, 0.21))] == [0.5, 0.21]


def test_only_clearly_irrelevant_web_results_are_dropped() -> None:
    assert [d.score for d in DecisionPolicy().plausible(documents(0.01, 0.06, 0.9))] == [0.9, 0.06]


@pytest.mark.parametrize(
    ("sources", "verdict"), [((), "none"), (("local",), "local"), (("web", "web"), "web"), (("local", "web"), "mixed")]
)
def test_the_verdict_names_where_evidence_came_from(sources: tuple[str, ...], verdict: str) -> None:
    assert verdict_of([Document(str(i), "text", source) for i, source in enumerate(sources)]) == verdict  # type: ignore[arg-type]
