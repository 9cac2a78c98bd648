"""Two workspaces whose tasks messages of SQS tell of."""

from collections.abc import AsyncIterator
from pathlib import Path

import boto3
import pytest
from moto import mock_aws
from pydantic import SecretStr

from tests.knowledge import Knowledge, answer_of
from tests.queues import make_fifo

NOTHING = {"pending": 0, "processing": 0}


@pytest.fixture
async def knowledge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Knowledge]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        tokens = SecretStr('{"mine-key": ["mine"], "theirs-key": ["theirs"]}')
        async with Knowledge(tmp_path, queue_url=make_fifo(boto3.client("sqs")), workspace_tokens=tokens) as made:
            yield made


async def backlog(knowledge: Knowledge, workspace: str) -> list[dict[str, int]]:
    """The numbers of each route that tells of the queue."""
    headers = {"Authorization": f"Bearer {workspace}-key"}

    async def told(path: str) -> dict[str, dict[str, int]]:
        body: dict[str, dict[str, int]] = answer_of(await knowledge.http.get(path, headers=headers))
        return body

    numbers = [
        (await told("/enrichment/stats"))["queue"],
        (await told("/health"))["queue"],
        await told("/v1/queue/dead"),
    ]
    pipeline = await told("/documents/pipeline_status")
    return [
        *({name: each[name] for name in NOTHING} for each in numbers),
        {"pending": pipeline["batchs"] - pipeline["cur_batch"], "processing": pipeline["cur_batch"]},  # type: ignore[operator]
    ]


async def test_the_backlog_of_a_workspace_is_its_own(knowledge: Knowledge) -> None:
    for name in ("otter", "kelp"):
        body = {"name": f"{name}.md", "text": f"The {name} is in the sea."}
        headers = {"Authorization": "Bearer theirs-key"}
        assert (await knowledge.http.post("/v1/documents", json=body, headers=headers)).status_code == 202
    assert (await knowledge.queue.stats()).pending == 2
    assert await backlog(knowledge, "mine") == [NOTHING] * 4
    assert await backlog(knowledge, "theirs") == [{"pending": 2, "processing": 0}] * 4
    await knowledge.index()
    assert await backlog(knowledge, "theirs") == [NOTHING] * 4
