import json
import os

import pytest
from cli_fakes import FakeWorker
from cli_services import printed

from cragside.application.attempts import Handled
from cragside.domain.errors import ConfigurationError
from cragside.domain.indexing import Task
from cragside.entrypoints.cli.worker import command

DONE = Handled(Task("library", "doc-1", "sha", 0, "embed"), "done", 1, 0.1234)
BURIED = Handled(Task("library", "dök-2", "sha", 3, "enrich"), "buried", 3, 1.5, "annotator: It is\x1b[2J down.")


def test_it_runs_until_it_is_stopped(run, container):
    container.made_worker = FakeWorker(DONE, waits=True)
    result = run("worker")
    assert (result.exit_code, result.stdout) == (0, "1 done, 0 retried, 0 buried\n")
    assert container.made_worker.asked == {"until_idle": False, "idle_seconds": 0.0, "sweep": True}
    assert container.closed == 1


def test_until_idle_it_ends_when_everything_is_done(run, container):
    container.made_worker = FakeWorker(DONE, DONE)
    result = run("worker", "--until-idle", "--no-sweep")
    assert (result.exit_code, result.stdout) == (0, "2 done, 0 retried, 0 buried\n")
    assert container.made_worker.asked == {"until_idle": True, "idle_seconds": 0.0, "sweep": False}


def test_it_says_that_another_worker_has_the_tasks(run, container):
    container.made_worker = FakeWorker(leads=False)
    first, second = run("worker", "--until-idle").stdout.splitlines()
    assert first == "0 done, 0 retried, 0 buried"
    assert second.startswith(
        "Another worker does the tasks of this knowledge base: that of a running server, or of one"
    )


@pytest.mark.parametrize(("said", "sweeps"), [([], True), (["--no-sweep"], False)])
def test_a_worker_beside_sqs_sweeps_as_any_other(run, container, environment, said, sweeps):
    environment["RAG_QUEUE_URL"] = "https://sqs.eu-central-1.amazonaws.com/1/index.fifo"
    container.made_worker = FakeWorker()
    assert run("worker", "--until-idle", *said).exit_code == 0
    assert container.made_worker.asked["sweep"] is sweeps


def test_a_number_of_idle_seconds_is_an_end_too(run, container):
    container.made_worker = FakeWorker()
    assert run("worker", "--idle", "2.5").exit_code == 0
    assert container.made_worker.asked == {"until_idle": True, "idle_seconds": 2.5, "sweep": True}


def test_a_task_that_was_given_up_is_reported_with_exit_code_1(run, container):
    container.made_worker = FakeWorker(DONE, BURIED)
    first, last = printed(run("worker", "--until-idle"), 1).splitlines()
    assert first.split() == [
        "buried",
        *["library", "dök-2", "part", "3", "enrich:", "annotator:", "It", "is[2J", "down."],
    ]
    assert last == "1 done, 0 retried, 1 buried"


def test_as_json_each_task_is_a_line(run, container):
    container.made_worker = FakeWorker(DONE, BURIED)
    lines = [json.loads(line) for line in run("worker", "--until-idle", "--json").stdout.splitlines()]
    assert lines[0] == {
        "workspace": "library",
        "document": "doc-1",
        "part": 0,
        "stage": "embed",
        "outcome": "done",
        "attempt": 1,
        "seconds": 0.123,
    }
    assert (lines[1]["document"], lines[1]["reason"]) == ("dök-2", BURIED.reason)


def test_a_wrong_configuration_is_bad_input(run, container):
    container.made_worker = FakeWorker(error=ConfigurationError("Unset RAG_EMBEDDING_MODEL."))
    result = run("worker", "--until-idle")
    assert (result.exit_code, result.stderr) == (2, "error: Unset RAG_EMBEDDING_MODEL.\n")


def test_the_worker_accepts_the_command_line_that_serve_builds(run, container, monkeypatch):
    niced: list[int] = []
    monkeypatch.setattr(os, "nice", niced.append)
    line = list(command(20.0, 10))
    for handled, given_way in (((), []), ((DONE, DONE), [10])):
        container.made_worker = FakeWorker(*handled)
        assert run(*line[line.index("worker") :], "--sweep").exit_code == 0
        assert container.made_worker.asked["idle_seconds"] == 20.0
        assert niced == given_way, "others go first once the first task is done"
