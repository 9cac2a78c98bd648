"""`cragside explain` on a store of its own, and on a service."""

import pytest
from cli_services import printed

from cragside.entrypoints.http.v1.enrich import ExplanationBody

TEXT = (
    "# The \x1b[31mlamp\n\nAnna Berg is the keeper of Tern Lighthouse. Tern Lighthouse belongs to the Harbour Board.\n"
)
QUESTION = "Who is the keeper of Tern Lighthouse?"


@pytest.fixture
def known(real, tmp_path):
    (tmp_path / "lamp.md").write_text(TEXT)
    assert real("ingest", str(tmp_path / "lamp.md")).exit_code == 0
    return real


def test_people_see_steps_reasons_and_the_prompt(known):
    said = printed(known("explain", QUESTION))
    for words in ("Verdict  local", "Step     retrieve ", "next inject", "kept as [1]; it needed more than 0.6"):
        assert words in said
    assert "words: keeper, tern, lighthouse" in said
    assert "best strip, " in said
    assert "graded by embedded" in said
    assert said.rstrip().endswith(QUESTION)
    assert "\x1b" not in said


def test_json_is_the_answer_of_the_route(known):
    told = known.json("explain", f"/rag {QUESTION}")
    assert ExplanationBody.model_validate(told, extra="forbid").question == QUESTION
    assert [each["filename"] for each in told["candidates"]] == ["lamp.md"]


def test_a_running_service_explains_its_own_store(served, known):
    told = known.json("explain", QUESTION, "--api", served.address, "--token", "secret")
    assert (told["candidates"], told["verdict"]) == ([], "none")
    assert known("explain", QUESTION, "--api", served.address, "--token", "wrong").exit_code != 0


def test_a_dropped_passage_says_why(known):
    said = known("explain", "Where does Anna Berg buy her potatoes?").stdout
    assert "dropped: its score is too low; it needed more than 0.2" in said
    assert "Degraded search: SEARXNG_HOST is not set" in said


def test_a_blank_question_is_refused(known):
    assert known("explain", " ").exit_code == 2
