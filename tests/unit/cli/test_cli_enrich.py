import json
from dataclasses import replace

from cli_fakes import OTTER, context_with
from cli_services import printed

from cragside.domain.evidence import Document
from cragside.domain.preferences import NOTHING_FOUND


def test_json_is_the_enhanced_request_and_nothing_else(run, container):
    result = run("enrich", "/rag why kelp?", "--json")
    body = json.loads(result.stdout)
    assert result.exit_code == 0
    assert body["prompt"].endswith("why kelp?")
    assert body["metadata"]["rag_context"]["documents"][0]["title"] == "Sea otter"
    assert {"id", "timestamp"} <= body.keys()
    assert container.closed == 1


def test_json_of_a_plain_text_is_the_unchanged_request(run):
    result = run("enrich", "hello", "--json")
    assert json.loads(result.stdout) == {"prompt": "hello"}


def test_people_see_verdict_citation_and_prompt(run):
    said = printed(run("enrich", "/rag why kelp?"))
    assert "Verdict  local" in said
    for word in ("0.91", "Sea otter", "sea-otter.md", "Otters eat urchins.", "why kelp?"):
        assert word in said
    assert "\x1b" not in said


def test_a_text_without_the_command_is_reported_as_unchanged(run):
    assert "Untouched: the text does not begin with /rag" in printed(run("enrich", "hello"))


def test_weak_evidence_and_failed_steps_are_reported(run, container, degraded):
    container.context = context_with(OTTER.graded(0.4), degraded=(degraded,))
    shown = run("enrich", "/rag why?").stdout
    assert "Verdict  local, weak: evidence from the knowledge base, none of it above 0.6" in shown
    assert "Degraded search: SEARXNG_HOST is not set" in shown


def test_no_evidence_is_no_failure(run, container):
    container.context = context_with(verdict="none")
    said = printed(run("enrich", "/rag why?"))
    assert "Verdict  none" in said
    assert "Closest" not in said
    assert "Try      Ask with the words of the documents" in said
    assert NOTHING_FOUND in said


def test_the_nearest_passages_are_shown_with_score_and_place_where_there_is_no_evidence(run, container):
    placed = replace(OTTER.graded(0.21), metadata={"filename": "sea\n-otter.md", "page": 4, "section": "Food"})
    container.context = context_with(verdict="none", closest=(placed,), search_performed=True)
    shown = run("enrich", "/rag why?").stdout
    assert "Closest, may not answer:\n  0.21  Sea otter (sea -otter.md, page 4, section Food)\n" in shown
    assert "SEARXNG_HOST" not in shown


def test_evidence_is_shown_with_its_date_and_what_is_later(run, container):
    later = replace(OTTER, id="new", metadata={"filename": "new.md", "date": "2025-03"})
    earlier = replace(OTTER, id="old", metadata={"filename": "old.md", "date": "2024", "earlierThan": "new"})
    container.context = context_with(later, earlier)
    shown = " ".join(run("enrich", "/rag why?").stdout.split())
    assert "new.md, 2025-03 " in shown
    assert "old.md, 2024, earlier than [1]" in shown


def test_json_tells_the_model_nothing_as_the_route_does(run, container):
    container.context = context_with(verdict="none")
    assert json.loads(run("enrich", "--json", "/rag why?").stdout)["prompt"] == "why?"


def test_a_dash_reads_standard_input(run, container):
    run("enrich", "-", given="/rag Grüße?\n".encode())
    assert container.asked[0][0]["prompt"] == "/rag Grüße?\n"


def test_bytes_that_are_no_text_are_replaced(run, container):
    result = run("enrich", "-", "--json", given=b"/rag \xff\xfe?")
    assert result.exit_code == 0
    assert container.asked[0][0]["prompt"] == "/rag ��?"


def test_the_workspace_is_passed_on(run, container):
    run("enrich", "/rag why?", "--workspace", "notes")
    assert container.asked[0][1] == "notes"


def test_evidence_cannot_steer_the_terminal(run, container):
    hostile = Document("2", "text", "web", title="a\x1b[2Jb\r\n[red]c", url="http://x/\x9b31m", score=0.7)
    container.context = context_with(hostile, verdict="web")
    shown = run("enrich", "/rag why?").stdout
    assert "\x1b" not in shown
    assert "\x9b" not in shown
    assert "[red]c" in shown
