import asyncio
import json
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from types import SimpleNamespace

import pytest
from cli_fakes import Host
from cli_services import printed

from cragside.bootstrap import Container
from cragside.composition.databases import DatabaseState
from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.entrypoints import component_checks
from cragside.entrypoints.component_checks import FOR_OPERATORS
from cragside.settings import Settings
from cragside.store.sqlite.database import failure_of
from tests.services.stub_searxng import StubSearxng


class Search:
    def __init__(self, error=None, hang=False):
        self._error, self._hang = error, hang

    async def search(self, query):
        if self._hang:
            await asyncio.sleep(60)
        if self._error:
            raise self._error
        return [{"title": "t", "url": "u", "content": "c"}]


def findings(result):
    return {finding["component"]: finding for finding in json.loads(result.stdout)}


def test_the_default_configuration_has_no_problems(run):
    result = run("doctor", "--json")
    found = findings(result)
    assert result.exit_code == 0
    assert found["ollama"]["state"] == found["searxng"]["state"] == "not configured"
    assert found["folder"]["state"] == found["store"]["state"] == found["lightrag-hku"]["state"] == "ok"
    assert "OLLAMA_BASE_URL" in found["ollama"]["remedy"]


def test_traces_that_cannot_be_sent_are_told(run, environment, monkeypatch):
    environment["RAG_TRACES"] = "true"
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "unlimited")
    result = run("doctor", "--json")
    assert result.exit_code == 2
    assert "a variable that begins with OTEL_" in findings(result)["settings"]["detail"]


@pytest.mark.waits("driver")
async def test_a_driver_that_takes_long_to_load_is_no_outage(tmp_path, monkeypatch):
    class Slow(Container):
        @cached_property
        def database(self):
            time.sleep(0.6)
            return "there"

    async def examine(database, *, needs_age):
        await asyncio.sleep(0.01)
        return DatabaseState("17", database, "", "")

    monkeypatch.setattr(component_checks, "examine", examine)
    settings = Settings(home=tmp_path, postgres_uri="postgresql://me@127.0.0.1/x")
    container = Slow(settings, workspaces=SimpleNamespace(names=names_of_none))
    found = {
        each.component: each
        for each in await component_checks.examine_components(container, replace(FOR_OPERATORS, seconds=0.5))
    }
    assert (found["postgres"].state, found["postgres"].detail) == ("ok", "there")


async def names_of_none():
    return []


def test_an_ollama_that_is_down_is_exit_code_3_and_hides_credentials(run, container, environment):
    environment["OLLAMA_BASE_URL"] = "http://user:secret@127.0.0.1:1"
    container.host = Host(error=ServiceUnavailable("ollama", "does not answer"))
    said = printed(run("doctor"), 3)
    assert "does not answer" in said
    assert "ollama serve" in said
    assert "secret" not in said


def test_a_model_that_was_named_and_is_missing_is_an_error(run, container, environment):
    environment |= {"OLLAMA_BASE_URL": "http://u:secret@127.0.0.1:1", "RAG_CHAT_MODEL": "big:70b"}
    container.host = Host("nomic-embed-text:latest")
    result = run("doctor", "--json")
    found = findings(result)
    assert result.exit_code == 3
    assert found["ollama"]["version"] == "0.9.1"
    assert found["ollama"]["detail"] == "http://127.0.0.1:1"
    assert found["chat model"]["state"] == "error"
    assert "ollama pull big:70b" in found["chat model"]["remedy"]
    assert found["embedding model"]["state"] == "ok"


def test_each_model_is_given_a_test_call(run, container, environment):
    environment["OLLAMA_BASE_URL"] = "http://127.0.0.1:1"
    environment["RAG_SECOND_OPINION"] = "never"
    container.host = Host("qwen2.5:7b", "nomic-embed-text:latest")
    result = run("doctor", "--json")
    assert result.exit_code == 0
    assert container.host.called == [("chat", "qwen2.5:7b"), ("embedding", "nomic-embed-text")]
    assert "answered a test call" in findings(result)["chat model"]["detail"]


def test_a_model_that_fails_its_test_call_is_an_error(run, container, environment):
    environment["OLLAMA_BASE_URL"] = "http://127.0.0.1:1"
    container.host = Host("qwen2.5:7b", call=ServiceUnavailable("ollama", "out of memory"))
    result = run("doctor", "--json")
    assert result.exit_code == 3
    assert "out of memory" in findings(result)["chat model"]["detail"]


def test_a_model_that_gives_no_answer_is_not_waited_for(run, container, environment, monkeypatch):
    monkeypatch.setattr(component_checks, "LOAD_SECONDS", 0.05)
    environment["OLLAMA_BASE_URL"] = "http://127.0.0.1:1"
    container.host = Host("qwen2.5:7b", call="hang")
    assert "no answer" in findings(run("doctor", "--json"))["chat model"]["detail"]


def test_a_default_model_that_is_missing_is_a_warning(run, container, environment):
    environment["OLLAMA_BASE_URL"] = "http://127.0.0.1:1"
    container.host = Host()
    result = run("doctor", "--json")
    assert result.exit_code == 0
    assert findings(result)["chat model"]["state"] == "warning"


def test_the_error_for_a_searxng_without_json_says_how_to_enable_it(run, container, environment):
    environment["SEARXNG_HOST"] = "http://127.0.0.1:1"
    container.search = Search(ServiceUnavailable("search", "refused JSON (403)"))
    result = run("doctor", "--json")
    found = findings(result)["searxng"]
    assert result.exit_code == 3
    assert "search.formats" in found["remedy"]
    assert "403" in found["detail"]


def test_lines_of_a_remedy_stand_below_each_other(run, container, environment):
    environment["SEARXNG_HOST"] = "http://127.0.0.1:1"
    container.search = Search(ServiceUnavailable("search", "SearXNG refused JSON (403)", answered=403))
    shown = run("doctor").stdout
    assert "Restart it:\n" + " " * 38 + "search:\n" + " " * 40 + "formats:\n" + " " * 42 + "- html\n" in shown


async def test_searxng_is_asked_directly_whatever_proxy_the_environment_names(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    async with StubSearxng() as searxng:
        searxng.body = {"version": "2026.1.2"}
        assert await component_checks.version_at(searxng.url) == "2026.1.2"


def test_a_component_that_hangs_is_not_waited_for(run, container, environment, monkeypatch):
    soon = replace(FOR_OPERATORS, seconds=0.05)
    monkeypatch.setattr(component_checks, "FOR_OPERATORS", soon)
    environment["SEARXNG_HOST"] = "http://127.0.0.1:1"
    container.search = Search(hang=True)
    assert "did not answer within" in findings(run("doctor", "--json"))["searxng"]["detail"]


def test_a_store_of_another_model_is_an_error_with_the_way_out(run, container, environment, tmp_path):
    (tmp_path / "home" / "default").mkdir(parents=True)
    container.error = ConfigurationError("It was built with another model. Run cragside reindex")
    result = run("doctor", "--json")
    assert result.exit_code == 3
    store = findings(result)["store"]
    assert (store["detail"], store["remedy"]) == ("It was built with another model.", "Run cragside reindex.")


@pytest.mark.parametrize(
    "error", [ServiceUnavailable("knowledge_base", "is damaged"), failure_of(sqlite3.DatabaseError("malformed"))]
)
def test_a_damaged_store_is_to_be_moved_away(run, container, tmp_path, error):
    folder = tmp_path / "home" / "default"
    folder.mkdir(parents=True)
    container.error = error
    result = run("doctor", "--json")
    store = findings(result)["store"]
    assert result.exit_code == 3
    assert "damaged" in store["detail"]
    assert store["remedy"] == f"If it is damaged, move {folder} away and index its texts again with `cragside ingest`."


def test_a_store_behind_a_silent_model_host_is_not_to_be_moved_away(run, container, tmp_path):
    (tmp_path / "home" / "default").mkdir(parents=True)
    container.error = ServiceUnavailable("ollama", "does not answer")
    assert findings(run("doctor", "--json"))["store"]["remedy"].startswith("Start it with `ollama serve`")


@pytest.mark.parametrize("caused", [False, True])
def test_a_store_that_cannot_be_opened_is_not_to_be_moved_away(run, container, tmp_path, caused):
    (tmp_path / "home" / "default").mkdir(parents=True)
    with pytest.raises(sqlite3.OperationalError) as refused:
        sqlite3.connect(tmp_path).execute("SELECT * FROM sqlite_master")
    container.error = failure_of(refused.value)
    if caused:
        container.error = ServiceUnavailable("knowledge_base", "unable to open database file. Check the permissions")
    container.error.__cause__ = refused.value
    store = findings(run("doctor", "--json"))["store"]
    assert store["state"] == "error"
    assert "unable to open database file." in store["detail"]
    assert store["remedy"].startswith("Check the permissions")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://127.0.0.1:1", "embedder: Ollama does not answer [http://127.0.0.1:1] Start it with `ollama serve`"),
        (None, "Set OLLAMA_BASE_URL"),
    ],
)
def test_the_error_for_an_unreachable_embedding_model_names_it(real, tmp_path, address, said):
    (tmp_path / "a.md").write_text("Alpha is a letter.")
    assert real("ingest", str(tmp_path / "a.md")).exit_code == 0
    with closing(sqlite3.connect(real.home / "default" / "store.sqlite3")) as store, store:
        store.execute("UPDATE meta SET value = 'nomic-embed-text' WHERE key = 'embedding_model'")
    result = real("doctor", "--json", **({"OLLAMA_BASE_URL": address} if address else {}))
    found = findings(result)["store"]
    assert (result.exit_code, found["state"]) == (3, "error")
    assert said in f"{found['detail']} {found['remedy']}"


def test_the_languages_of_the_documents_are_told_with_what_crosses_them(real, tmp_path):
    (tmp_path / "en.md").write_text("The rent of the boat shed is due in March, and the rowing club pays it.")
    assert real("ingest", str(tmp_path / "en.md")).exit_code == 0
    store = findings(real("doctor", "--json"))["store"]
    assert store["detail"].endswith("which finds English documents by questions in their own language alone")
    assert store["remedy"] == ""
    (tmp_path / "de.md").write_text("Die Miete für den Bootsschuppen ist im März fällig, und der Verein zahlt sie.")
    assert real("ingest", str(tmp_path / "de.md")).exit_code == 0
    store = findings(real("doctor", "--json"))["store"]
    assert (store["state"], "German and English" in store["detail"]) == ("ok", True)
    assert "RAG_EMBEDDING_MODEL=bge-m3" in store["remedy"]


def test_the_store_is_opened_after_the_servers_have_answered(run, container, environment, tmp_path):
    (tmp_path / "home" / "default").mkdir(parents=True)
    environment["OLLAMA_BASE_URL"] = "http://127.0.0.1:1"
    container.host = Host("qwen2.5:7b")
    done, models = [], container.host.models

    async def slow_models():
        await asyncio.sleep(0.05)
        done.append(not container.opened)
        return await models()

    container.host.models = slow_models
    assert findings(run("doctor", "--json"))["store"]["state"] == "ok"
    assert done == [True], "opening a store keeps the loop busy: a connection would seem to time out meanwhile"


def test_bad_settings_are_reported_like_everything_else(run, environment):
    environment["RAG_THRESHOLD"] = "2"
    assert "RAG_THRESHOLD" in printed(run("doctor"), 2)


@pytest.mark.parametrize("where", ["a file", "below a file"])
def test_a_home_that_cannot_be_a_folder_is_an_error(run, environment, tmp_path, where):
    (tmp_path / "file").write_text("")
    environment["RAG_HOME"] = str(tmp_path / "file" if where == "a file" else tmp_path / "file" / "deep")
    result = run("doctor", "--json")
    assert result.exit_code == 3
    found = findings(result)
    assert "RAG_HOME" in found["folder"]["remedy"]
    assert found["store"]["state"] == "error"
    assert found["store"]["remedy"] == found["folder"]["remedy"]
