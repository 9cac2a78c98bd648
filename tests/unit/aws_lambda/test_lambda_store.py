import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lambda_stub import Context, event

from cragside.bootstrap import build_container
from cragside.domain.document import SourceText
from cragside.entrypoints.aws_lambda.function import Function
from cragside.entrypoints.aws_lambda.late import LateContainer
from cragside.entrypoints.http.app import create_app
from cragside.settings import Settings, load_settings

KELP = "Giant kelp grows sixty centimetres a day in cold water off California, faster than any other plant."


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a store with one passage in it."""
    settings = load_settings({"RAG_HOME": str(tmp_path), "RAG_API_TOKEN": "right"})

    async def fill() -> None:
        container = build_container(settings)
        repository = await container.workspaces.repository("default")
        await repository.save_documents([SourceText("kelp.md", KELP)])
        await container.close()

    asyncio.run(fill())
    return settings


@pytest.fixture
def container(settings: Settings) -> LateContainer:
    return LateContainer(settings)


@pytest.fixture
def function(container: LateContainer) -> Iterator[Function]:
    function = Function(create_app(container))
    yield function
    function.close()


def test_a_real_store_answers_event_after_event_on_one_loop(function: Function) -> None:
    for _ in range(3):
        answer = function.answer(event(), Context())
        assert answer["statusCode"] == 200
        assert "sixty centimetres" in json.loads(answer["body"])["prompt"]


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


def test_everything_is_there_after_loading_ahead(function: Function, container: LateContainer) -> None:
    function.load(container)
    loop = function._runner.get_loop()
    before = len(asyncio.all_tasks(loop))
    assert function.answer(event(), Context())["statusCode"] == 200
    assert len(asyncio.all_tasks(loop)) == before
