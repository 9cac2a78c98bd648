"""Stand-ins for Lambda: its context, its events, and a container of fakes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.entrypoints.aws_lambda.function import Function
from cragside.entrypoints.http.app import create_app
from cragside.settings import Settings
from tests.fakes import FakeRepository, FakeWorkspaces, ScriptedGrader

KELP = "kelp grows fast"


class Context:
    """Lambda's context, with a number of seconds left."""

    function_name = "enrich"
    function_version = "1"
    memory_limit_in_mb = 1024
    invoked_function_arn = "arn:aws:lambda:eu-central-1:123456789012:function:enrich"
    aws_request_id = "b7f6b0f2-4c5f-4f0a-9d3e-2a1b3c4d5e6f"

    def __init__(self, seconds: float = 60) -> None:
        self.seconds = seconds

    def get_remaining_time_in_millis(self) -> int:
        return int(self.seconds * 1000)


def event(name: str = "http_api", **changes: Any) -> dict[str, Any]:
    """An event as AWS sends it, from `events/`."""
    recorded = json.loads((Path(__file__).parent / "events" / f"{name}.json").read_text())
    return {**recorded, **changes}


def health() -> dict[str, Any]:
    """GET /healthz, without a token."""
    asked = event(body=None, rawPath="/healthz")
    asked["requestContext"]["http"] |= {"method": "GET", "path": "/healthz"}
    del asked["headers"]["x-api-key"]
    return asked


def container(
    members: Mapping[str, Any] | None = None, *, failure: Exception | None = None, **settings: Any
) -> Container:
    """One passage about kelp, behind the token `right`."""
    return Container(
        Settings(**{"api_token": SecretStr("right"), **settings}),
        workspaces=FakeWorkspaces(FakeRepository(SourceText("kelp.md", KELP), failure=failure)),
        grader=ScriptedGrader({KELP: 0.9}),
        **(members or {}),
    )


def function_of(built: Container) -> Function:
    """The function for a container."""
    return Function(create_app(built), built)


def close(function: Function, built: Container) -> None:
    """End what Lambda would end without a word."""
    function._runner.run(built.close())
    function._runner.close()
