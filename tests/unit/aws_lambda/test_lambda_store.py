import asyncio
import io
import json
import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from lambda_stub import Context, close, event, function_of

from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.entrypoints.aws_lambda import runtime as observability
from cragside.entrypoints.aws_lambda.function import Function
from cragside.settings import Settings, load_settings

QUESTION = "/rag How fast does giant kelp grow off California?"
KELP = "Giant kelp grows sixty centimetres a day in cold water off California, faster than any other plant."


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a store with one passage in it."""
    settings = load_settings({"RAG_HOME": str(tmp_path), "RAG_API_TOKEN": "right"})

    async def fill() -> None:
        container = Container(settings)
        repository = (await container.workspaces.open("default")).passages
        await repository.save_documents([SourceText("kelp.md", KELP)])
        await container.close()

    asyncio.run(fill())
    return settings


@pytest.fixture
def container(settings: Settings) -> Container:
    return Container(settings)


@pytest.fixture
def function(container: Container) -> Iterator[Function]:
    function = function_of(container)
    yield function
    close(function, container)


def test_a_real_store_answers_event_after_event_on_one_loop(function: Function) -> None:
    for _ in range(3):
        answer = function.answer(event(), Context())
        assert answer["statusCode"] == 200
        assert "sixty centimetres" in json.loads(answer["body"])["prompt"]


def test_events_of_an_explanation_arrive_together_at_the_end(function: Function) -> None:
    asked = event(body=json.dumps({"prompt": QUESTION}), rawPath="/v1/explain")
    asked["requestContext"]["http"] |= {"path": "/v1/explain"}
    as_json = function.answer(asked, Context())
    assert json.loads(as_json["body"])["verdict"] == "local"
    asked["headers"] = {**asked["headers"], "accept": "text/event-stream"}
    answer = function.answer(asked, Context())
    assert answer["isBase64Encoded"] is False
    names = [line for line in answer["body"].split("\n") if line.startswith("event: ")]
    assert names == ["event: step"] * 4 + ["event: done"]


def test_neither_prompt_nor_evidence_is_logged_at_any_level(
    function: Function, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], log: io.StringIO
) -> None:
    # LightRAG's logger does not hand on to the root, and what it writes itself goes to the function's log as well.
    loggers = [logging.getLogger(name) for name in ("", observability.SERVICE, "lightrag")]
    levels = [(logger, logger.level) for logger in loggers]
    logging.getLogger("lightrag").addHandler(caplog.handler)
    try:
        for logger in loggers:
            logger.setLevel(logging.DEBUG)
        answer = observability.observed(function.answer)(event(body=json.dumps({"prompt": QUESTION})), Context())
    finally:
        logging.getLogger("lightrag").removeHandler(caplog.handler)
        for logger, level in levels:
            logger.setLevel(level)
    assert "sixty centimetres" in json.loads(answer["body"])["prompt"]
    written = capfd.readouterr()
    said = (log.getvalue() + caplog.text + written.out + written.err).lower()
    for private in ("kelp", "california", "sixty", "right"):
        assert private not in said


def test_a_degradation_is_logged_with_its_reason(function: Function, settings: Settings, log: io.StringIO) -> None:
    (settings.home / "default/store.sqlite3").write_bytes(b"no store" * 1000)
    observability.observed(function.answer)(event(), Context())
    (said,) = (json.loads(line) for line in log.getvalue().splitlines())
    assert said["degraded"] == ["knowledge_base", "search"]
    assert "store of workspace default is damaged" in said["reasons"][0]


def test_a_wrong_setting_is_a_failure_whose_log_names_both_models_and_the_way_out(
    settings: Settings, log: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    with sqlite3.connect(settings.home / "default/store.sqlite3") as connection:
        connection.execute("UPDATE meta SET value = 'other-model' WHERE key = 'embedding_model'")
    container = Container(settings.model_copy(update={"embedding_model": "embedded"}))
    function = function_of(container)
    answer = observability.observed(function.answer)(event(), Context())
    close(function, container)
    assert answer["statusCode"] == 503
    assert "other-model" not in answer["body"]
    messages = [json.loads(line)["message"] for line in log.getvalue().splitlines()]
    (told,) = (message for message in messages if "other-model" in message)
    assert "RAG_EMBEDDING_MODEL names wordllama-256" in told
    assert "cragside reindex --workspace default" in told
    counted = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["Failures"] for line in counted if "Failures" in line] == [[1.0]]


def test_no_work_outlives_an_answer(function: Function) -> None:
    loop = function._runner.get_loop()
    function.answer(event(), Context())
    # The store's workers, which wait for work and are not waited for.
    idle = asyncio.all_tasks(loop)
    for _ in range(3):
        function.answer(event(), Context())
        assert {task.get_name() for task in idle} >= {
            task.get_name() for task in asyncio.all_tasks(loop) if "Queue.get" not in repr(task.get_coro())
        }
        assert not loop.is_running()


def test_everything_is_there_after_loading_ahead(function: Function, container: Container) -> None:
    function.load(container)
    loop = function._runner.get_loop()
    before = len(asyncio.all_tasks(loop))
    assert function.answer(event(), Context())["statusCode"] == 200
    assert len(asyncio.all_tasks(loop)) == before
