import json

import pytest
from cli_services import printed

from tests.knowledge import leave_to_the_worker


def test_status_shows_sizes_model_and_location(run, environment):
    said = printed(run("status"))
    for word in ("default", "wordllama", "entities", environment["RAG_HOME"]):
        assert word in said


@pytest.mark.parametrize(("count", "waiting"), [(1, "1 document waiting"), (2, "2 documents waiting")])
def test_status_explains_why_there_are_no_passages(real, tmp_path, count, waiting, monkeypatch):
    leave_to_the_worker(monkeypatch)
    for number in range(count):
        (tmp_path / f"{number}.md").write_text(f"Note {number}.")
    assert real("ingest", "--no-wait", *(str(path) for path in tmp_path.glob("*.md"))).exit_code == 0
    assert f"passages         0 ({waiting})\n" in real("status").stdout


def test_status_counts_what_another_database_does_not_have_yet(run, container):
    assert "waiting" not in run("status").stdout
    assert json.loads(run("status", "--json").stdout)["waiting_changes"] == 0
    container.waiting = 3
    assert "changes waiting  3\n" in run("status").stdout
    assert json.loads(run("status", "--json").stdout)["waiting_changes"] == 3


def test_status_in_json_is_pure(run, environment):
    known = json.loads(run("status", "--json", "--workspace", "w").stdout)
    assert known["workspace"] == "w"
    assert known["store"] == environment["RAG_HOME"]
    assert known["by_status"] == {"processed": 0}


def test_reindex_rebuilds_the_workspace(run, container):
    said = printed(run("reindex", "--workspace", "w"))
    assert container.reindexed == ["w"]
    assert "1 text." in said
