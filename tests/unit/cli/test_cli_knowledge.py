"""`cragside query`, `graph`, `memory`, `documents` and `enrich-docs` on a store of their own, and on a service."""

import json
import re
import shutil
import sqlite3
from contextlib import closing

import pytest
from cli_services import RealCommands, errors_of, printed, refused

from cragside.adapters.embedded.annotator import EmbeddedAnnotator
from cragside.domain.errors import ServiceUnavailable
from cragside.entrypoints.cli import service
from tests.knowledge import leave_to_the_worker

TEXT = "# The lamp\n\nAnna Berg is the keeper of Tern Lighthouse. Tern Lighthouse belongs to the Harbour Board.\n"


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """The folder of a store that knows the lamp, to be copied."""
    folder = tmp_path_factory.mktemp("filled")
    (folder / "lamp.md").write_text(TEXT)
    assert RealCommands(folder / "home")("ingest", str(folder / "lamp.md")).exit_code == 0
    return folder / "home"


@pytest.fixture
def known(real, filled):
    shutil.copytree(filled, real.home)
    return real


def test_a_question_finds_the_passage_and_its_place(known):
    assert "lamp.md (The lamp)" in printed(known("query", "who keeps the lighthouse?"))
    found = known.json("query", "--q", "who keeps the lighthouse?", "--topK", "1", "--graph")
    assert [each["source"] for each in found["results"]] == ["lamp.md"]
    assert found["graph"]["entities"]


def test_both_figures_are_shown_under_their_names(known, tmp_path):
    (tmp_path / "pump.md").write_text("A heat pump moves heat from a cold place to a warm one.\n")
    assert known("ingest", str(tmp_path / "pump.md")).exit_code == 0
    result = known("query", "Who is the keeper of Tern Lighthouse?")
    assert re.match(r"relevance 0\.\d\d  similarity 0\.\d\d  lamp\.md \(The lamp\)\n", result.stdout)
    graded = known.json("query", "Who is the keeper of Tern Lighthouse?")
    assert [each["source"] for each in graded["results"]] == ["lamp.md", "pump.md"]
    enriched = known.json("enrich", "/rag Who is the keeper of Tern Lighthouse?")
    (document,) = enriched["metadata"]["rag_context"]["documents"]
    assert graded["results"][0]["relevance"] == document["score"] > 0.6
    near = known.json("query", "Who is the keeper of Tern Lighthouse?", "--by", "similarity", "--min-similarity", "0")
    assert [each["relevance"] for each in near["results"]] == [None, None]
    assert near["results"][0]["similarity"] == graded["results"][0]["similarity"]
    assert known("query", "Tern Lighthouse", "--by", "similarity").stdout.startswith("similarity 0.")


def test_passages_below_the_least_figures_are_left_out_and_the_best_is_told(known):
    result = known("query", "Where do otters sleep?", "--min-relevance", "0.6")
    assert result.stdout.startswith("Nothing found.\nThe best passage has a relevance of 0.")
    assert "lower --min-relevance" in result.stdout
    result = known("query", "lighthouse", "--by", "similarity", "--min-similarity", "1")
    assert "The best passage has a similarity of 0." in result.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--by", "taste"), "relevance"),
        (("--by", "similarity", "--mode", "mix"), "mode is an option of a search by relevance"),
        (("--by", "similarity", "--min-relevance", "0.5"), "min_relevance is an option of a search by relevance"),
        (("--min-similarity", "2"), "'--min-similarity': Input should be less than or equal to 1"),
    ],
)
def test_options_of_the_other_ranking_are_bad_input(known, options, said):
    result = known("query", "lighthouse", *options)
    assert (result.exit_code, result.stdout, said in result.stderr) == (2, "", True), result.stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("query", "hi", "--q", "ho"), "TEXT and --q mean the same. Give one of them."),
        (("query", "hi", "--q", ""), "TEXT and --q mean the same. Give one of them."),
        (("graph", "Dover", "--entity", "x"), "NAME and --entity mean the same. Give one of them."),
    ],
)
def test_a_value_that_is_given_twice_is_bad_input(real, command, said):
    result = real(*command)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"error: {said}\n")
    assert not real.home.exists()


def test_options_may_be_spelt_as_in_rag_stack(known):
    result = known("query", "lighthouse", "--collection", "empty", "--topK", "1", "--graph-expand")
    assert (result.exit_code, result.stdout) == (0, "Nothing found.\n"), result.stderr
    assert known("query", "lighthouse", "--topKs", "1").exit_code == 2


def test_a_filter_that_nothing_meets_finds_nothing(known):
    result = known("query", "lighthouse", "--repoId", "other")
    assert (result.exit_code, result.stdout) == (0, "Nothing found.\n")


def test_unindexed_documents_are_reported_with_the_answer(known, tmp_path, monkeypatch):
    leave_to_the_worker(monkeypatch)
    (tmp_path / "oil.md").write_text("The oil of the lamp is kept in the cellar.\n")
    assert known("ingest", str(tmp_path / "oil.md"), "--no-wait").exit_code == 0
    result = known("query", "where is the oil?")
    assert "oil.md" not in result.stdout
    assert result.stderr == "Documents that wait to be indexed: 1. `cragside worker --until-idle` indexes them.\n"
    assert known("worker", "--until-idle").exit_code == 0
    result = known("query", "where is the oil?")
    assert "oil.md" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize("environment", [{"OLLAMA_BASE_URL": "http://127.0.0.1:1"}, {}])
def test_commands_without_embedding_work_while_the_model_is_unreachable(known, tmp_path, environment):
    with closing(sqlite3.connect(known.home / "default" / "store.sqlite3")) as store, store:
        store.execute("UPDATE meta SET value = 'nomic-embed-text' WHERE key = 'embedding_model'")
    (tmp_path / "oil.md").write_text("The oil of the lamp is kept in the cellar.\n")
    assert known("ingest", str(tmp_path / "oil.md"), "--no-wait", **environment).exit_code == 0
    told = known.json("documents", **environment)["documents"]
    assert {each["name"]: each["status"] for each in told} == {"lamp.md": "enriched", "oil.md": "pending"}
    assert known("enrich-docs", "--stats-only", **environment).exit_code == 0
    assert known("graph", "Tern Lighthouse", **environment).exit_code == 0
    assert known.json("status", **environment)["embedding_model"] == "nomic-embed-text"
    for search in (("query", "lighthouse"), ("memory", "search", "lighthouse")):
        said = refused(known(*search, **environment), 3 if environment else 2)
        assert ("embedder: " if environment else "Set OLLAMA_BASE_URL") in said
        assert said.count("\n") == 1
    assert known("forget", "lamp.md", **environment).exit_code == 0


@pytest.mark.parametrize("command", [("query",), ("query", " "), ("graph",), ("graph", "")])
def test_an_empty_question_is_bad_input(real, command):
    assert refused(real(*command)).startswith("error: ")
    assert not real.home.exists()


def test_a_question_that_is_not_utf_8_is_bad_input(known):
    result = known("query", "who \udcff lit the lamp?")
    assert (result.exit_code, result.stderr) == (
        2,
        "error: The question or a condition is not UTF-8. Check the terminal's encoding.\n",
    )


def test_an_unknown_mode_is_bad_input(known):
    assert "mode" in refused(known("query", "lighthouse", "--mode", "psychic"))


def test_local_commands_need_no_token(known):
    assert known("query", "lighthouse", RAG_API_TOKEN="token").exit_code == 0
    bound = known("documents", RAG_WORKSPACE_TOKENS='{"token": ["other"]}')
    assert bound.exit_code == 0, bound.stderr


def test_local_commands_have_no_limits(real, tmp_path):
    (tmp_path / "lamp.md").write_text(TEXT)
    assert real("sync", str(tmp_path), "--no-enrich", RAG_LIMIT_DOCUMENTS="0").exit_code == 0
    said = ("--user", "What is the code of the lamp room?", "--assistant", "The code of the lamp room is 4711.")
    assert real("memory", "add", *said, RAG_LIMIT_DOCUMENTS="0").stdout == "Remembered.\n"


@pytest.mark.parametrize("command", [("enrich-docs", "--force"), ("memory", "forget", "mem-1"), ("sync", ".")])
def test_the_error_names_the_store_that_cannot_be_written(real, tmp_path, monkeypatch, command):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "lamp.md").write_text(TEXT)
    baked = str(tmp_path / "baked")
    assert real("bake", str(tmp_path / "notes"), "--out", baked).exit_code == 0
    (tmp_path / "notes" / "new.md").write_text("More.")
    monkeypatch.chdir(tmp_path / "notes")
    result = real(*command, RAG_HOME=baked)
    assert (result.exit_code, f"{baked} is a baked store" in result.stderr) == (2, True), result.stderr


def test_an_entity_is_shown_with_its_connections_and_documents(known):
    entities = known.json("query", "lighthouse", "--graph")["graph"]["entities"]
    said = printed(known("graph", entities[0]["name"]))
    assert said.startswith(entities[0]["name"])
    assert "in lamp.md" in said
    assert known.json("graph", "--entity", entities[0]["name"])["entity"]["name"] == entities[0]["name"]


def test_an_unknown_entity_is_a_failure_that_names_it(known):
    assert "Nobody Atall" in refused(known("graph", "Nobody Atall"), 1)


def test_a_memory_is_found_at_once(real):
    said = ("--user", "What is the code of the lamp room?", "--assistant", "The code of the lamp room is 4711.")
    result = real("memory", "add", *said)
    assert (result.exit_code, result.stdout) == (0, "Remembered.\n"), result.stderr
    found = printed(real("memory", "search", "code of the lamp room", "--mode", "naive"))
    assert "# Relevant Memory" in found
    assert "4711" in found


@pytest.mark.parametrize("queued", [False, True])
def test_a_service_says_if_a_memory_can_be_recalled_already(real, served, monkeypatch, queued):
    if queued:
        leave_to_the_worker(monkeypatch)
    said = ("--user", "What is the code of the lamp room?", "--assistant", "The code of the lamp room is 4711.")
    result = real("memory", "add", *said, "--api", served.address, "--token", "secret")
    assert result.stdout == ("Remembered. It can be recalled in a moment.\n" if queued else "Remembered.\n")


def test_memories_can_be_listed_and_forgotten(real):
    said = ("--user", "What is the code of the lamp room?", "--assistant", "The code of the lamp room is 4711.")
    identifier = real.json("memory", "add", *said)["id"]
    listed = printed(real("memory", "list"))
    assert listed.startswith(f"{identifier}  20")
    assert "Assistant: The code of the lamp room is 4711.\n\n1 of 1 exchanges.\n" in listed
    assert real("memory", "list", "--offset", "1").stdout == "0 of 1 exchanges.\n"
    assert real("documents").stdout.count("conv_") == 0
    result = real("memory", "forget", identifier, "doc-none")
    assert (result.exit_code, result.stdout) == (1, f"forgotten {identifier}\n")
    assert "There is no exchange doc-none in memory." in result.stderr
    assert real.json("memory", "list") == {"memories": [], "total": 0, "limit": 20, "offset": 0}


def test_a_greeting_is_not_remembered_and_that_is_no_failure(real):
    assert printed(real("memory", "add", "--user", "Hi!", "--assistant", "Hello!")).startswith("Not remembered: ")
    assert real("memory", "search", "anything at all").stdout == "Nothing is remembered on this.\n"


def test_as_many_memories_can_be_asked_for_as_the_route_gives(real):
    assert real("memory", "search", "anything at all", "--limit", "100").exit_code == 0
    assert real("memory", "search", "anything at all", "--limit", "101").exit_code == 2


def test_an_invalid_date_is_bad_input(real):
    assert "date" in errors_of(real("memory", "add", "--user", "a", "--assistant", "b", "--date", "yesterday"), 2)


def test_documents_are_listed_with_status_and_id(known):
    listed = known.json("documents")
    (document,) = listed["documents"]
    assert known("documents").stdout == f"enriched   {document['id']}      1  lamp.md\n1 document.\n"
    assert known("documents", "--status", "lost").exit_code == 2


def test_force_enriches_everything_again(known):
    assert known.json("enrich-docs")["enqueued"] == 0
    told = known.json("enrich-docs", "--force")
    assert (told["enqueued"], told["stopped"]) == (2, None)
    assert told["queue"] == {"pending": 0, "processing": 0, "deadLetter": 0}
    assert told["totals"]["enriched"] == 1


def test_texts_that_were_only_made_searchable_can_be_enriched_later(real, tmp_path):
    (tmp_path / "lamp.md").write_text(TEXT)
    assert real("ingest", "--no-enrich", str(tmp_path / "lamp.md")).exit_code == 0
    identifier = real.json("documents")["documents"][0]["id"]
    assert real.json("enrich-docs", "--stats-only")["totals"]["none"] == 1
    assert "1 enriched, 0 failed" in printed(real("enrich-docs", "--document", identifier, "--force"))


def test_an_unknown_document_cannot_be_enriched(known):
    assert "no document doc-none" in refused(known("enrich-docs", "--document", "doc-none"), 1)


def test_enriching_stops_when_what_it_needs_is_down(known, monkeypatch):
    monkeypatch.setattr(service, "TRIES", 1)
    monkeypatch.setattr(service, "TRIED_SECONDS", 0.0)

    async def down(*_):
        raise ServiceUnavailable("annotator", "is down")

    monkeypatch.setattr(EmbeddedAnnotator, "tier3", down)
    result = known("enrich-docs", "--force", "--json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["stopped"] == "annotator: is down"
    assert "Nothing is lost: unfinished work waits in the queue" in result.stderr
    left = known.json("enrich-docs", "--stats-only")
    assert (left["queue"]["pending"], left["queue"]["processing"]) == (1, 0)
    assert (left["totals"]["pending"], left["totals"]["processing"]) == (1, 0)


def test_a_service_is_asked_with_its_token(real, served, tmp_path):
    (tmp_path / "lamp.md").write_text(TEXT)
    service = ("--api", served.address, "--token", "secret")
    assert real("ingest", str(tmp_path / "lamp.md"), *service).exit_code == 0
    assert real.json("query", "lighthouse", *service)["results"][0]["source"] == "lamp.md"
    assert real.json("enrich-docs", "--force", "--watch", *service)["queue"]["pending"] == 0
    identifier = real.json("documents", *service)["documents"][0]["id"]
    assert real.json("enrich-docs", "--document", identifier, *service)["enqueued"] == 0
    assert real.json("memory", "add", "--user", "Hi", "--assistant", "Hello", *service)["indexed"] is False
    unknown = real("graph", "Nobody Atall", *service)
    assert (unknown.exit_code, "Nobody Atall" in unknown.stderr) == (1, True)
    assert real("query", "lighthouse", "--api", served.address).exit_code == 1
    by_environment = real("query", "lighthouse", "--api", served.address, RAG_API_TOKEN="secret")
    assert by_environment.exit_code == 0
    assert not real.home.exists()


@pytest.mark.parametrize(
    "command",
    [
        ("query", "lamp"),
        ("graph", "Lamp"),
        ("memory", "search", "lamp"),
        ("memory", "add", "--user", "a", "--assistant", "b"),
        ("memory", "list"),
        ("documents",),
        ("enrich-docs",),
        ("enrich-docs", "--stats-only"),
    ],
)
@pytest.mark.parametrize(
    ("status", "body", "code"),
    [(503, '{"error": {"message": "is down"}}', 3), (401, "{}", 1), (400, '{"error": "no"}', 2), (200, "<html>", 1)],
)
def test_errors_of_a_service_are_one_line(real, stub, command, status, body, code):
    with stub(status, body) as address:
        result = real(*command, "--api", address)
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "command", [("query", "lamp"), ("graph", "Lamp"), ("documents",), ("enrich-docs",), ("memory", "list")]
)
def test_unexpected_json_gives_an_error_without_traceback(real, stub, command):
    with stub(200, '{"other": 1}') as address:
        result = real(*command, "--api", address)
    assert result.exit_code == 1
    assert "Traceback" not in result.stderr


def test_an_invalid_address_is_bad_input(real):
    result = real("query", "lamp", "--api", "localhost:8642")
    assert (result.exit_code, result.stderr) == (2, "error: --api has to begin with http:// or https://.\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--api", "http://127.0.0.1:99999"), "--api has a port that does not exist: 99999."),
        (("--api", "http://127.0.0.1:9", "--token", "ü"), "A token has printable ASCII characters only."),
        (("--api", "http://127.0.0.1:9", "--token", "a\nb"), "A token has printable ASCII characters only."),
    ],
)
def test_an_impossible_port_or_token_is_bad_input(real, arguments, said):
    result = real("documents", *arguments)
    assert (result.exit_code, result.stderr) == (2, f"error: {said}\n")


def test_an_exchange_that_a_baked_store_cannot_take_is_a_failure(real, tmp_path):
    (tmp_path / "lamp.md").write_text("The keeper trims the lamp every evening.")
    assert real("bake", str(tmp_path / "lamp.md"), "--out", str(tmp_path / "baked")).exit_code == 0
    said = printed(
        real(
            "memory",
            "add",
            "--user",
            "Who trims the lamp?",
            "--assistant",
            "The keeper trims the lamp of the lighthouse, each evening at dusk.",
            RAG_HOME=str(tmp_path / "baked"),
        ),
        1,
    )
    assert "baked store" in said
