"""The worked examples of docs/extending.md work."""

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from cragside.adapters.documents.loader import FileLoader
from cragside.adapters.embedded.language_model import EmbeddedLanguageModel
from cragside.application.preferences import WorkspacePreferences
from cragside.bootstrap import Container
from cragside.domain.errors import ServiceUnavailable, ValidationError
from cragside.domain.preferences import CHANGEABLE, Preferences
from cragside.settings import load_settings

PAGE = (Path(__file__).parents[3] / "docs/extending.md").read_text()
TEXT = "Ada Lovelace wrote the first program for the Analytical Engine of Charles Babbage."


def example(name: str) -> Any:
    """The class of that name, from the page's code."""
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if f"class {name}:" in block)
    namespace: dict[str, Any] = {}
    exec(compile(code, "docs/extending.md", "exec"), namespace)
    return namespace[name]


async def test_a_document_type(tmp_path: Path) -> None:
    files = FileLoader()
    loader = example("CalendarLoader")(files)
    container = Container(load_settings({"RAG_HOME": str(tmp_path)}), loader=loader)
    try:
        event = b"BEGIN:VEVENT\r\nSUMMARY:Lamp inspection\r\nLOCATION:Harbour\r\nEND:VEVENT\r\n"
        calendar = await container.intake.file(event, name="plan.ics", workspace="coast")
        notes = await container.intake.file(b"# Notes\nThe lamp is lit.", name="notes.md", workspace="coast")
        with pytest.raises(ValidationError, match="holds no events"):
            await container.intake.file(b"BEGIN:VCALENDAR", name="empty.ics", workspace="coast")
        assert await container.worker().run(until_idle=True) == {"done": 2}
        passages = await container.retriever.search(
            await container.retriever.search_for("lamp inspection", workspace="coast", threshold=0.0), workspace="coast"
        )
    finally:
        await container.close()
        await files.close()
    assert passages[0].content == "Lamp inspection\nHarbour"
    assert (calendar.record.file_type, notes.record.file_type) == ("ics", "md")


async def test_a_model_host(tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []

    async def answer(request: httpx.Request) -> httpx.Response:
        body = orjson.loads(request.content)
        asked.append(body)
        system = next((turn["content"] for turn in body["messages"] if turn["role"] == "system"), None)
        content = await EmbeddedLanguageModel().complete(body["messages"][-1]["content"], system=system)
        return httpx.Response(200, json={"choices": [{"message": {"content": content}}]})

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://host") as client:
        model = example("OpenAiLanguageModel")(client, "my-model")
        container = Container(load_settings({"RAG_HOME": str(tmp_path)}), language_model=model)
        try:
            await container.intake.written(TEXT, name="ada.md", workspace="history")
            assert await container.worker().run(until_idle=True) == {"done": 1}
            status = await (await container.workspaces.open("history")).passages.status()
        finally:
            await container.close()
    assert {body["model"] for body in asked} == {"my-model"}
    assert status.entities > 0


@pytest.mark.parametrize(
    "answer", [httpx.Response(500), httpx.Response(200, text="no JSON"), httpx.Response(200, json={})]
)
async def test_a_model_host_that_fails(answer: httpx.Response) -> None:
    transport = httpx.MockTransport(lambda _: answer)
    async with httpx.AsyncClient(transport=transport, base_url="http://host") as client:
        with pytest.raises(ServiceUnavailable):
            await example("OpenAiLanguageModel")(client, "my-model").complete("Hello")


def test_a_program_with_a_temporary_folder_leaves_nothing_behind(tmp_path: Path) -> None:
    (program,) = (code for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "tempfile" in code)
    environment = {**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, any(tmp_path.iterdir())) == (
        0,
        "The keeper lights the lamp at dusk.\n",
        False,
    )


async def test_a_preference_store(tmp_path: Path) -> None:
    settings = load_settings({"RAG_HOME": str(tmp_path)})
    defaults = Preferences(**{name: getattr(settings, name) for name in CHANGEABLE})
    table = example("PreferenceTable")
    with sqlite3.connect(tmp_path / "preferences.db") as connection:
        await WorkspacePreferences(defaults, table(connection)).change("coast", {"similarity_results": 3})
    connection.close()
    connection = sqlite3.connect(tmp_path / "preferences.db")
    preferences = WorkspacePreferences(defaults, table(connection))
    assert (await preferences.of("coast")).similarity_results == 3
    assert await preferences.of("inland") == defaults
    assert await preferences.change("coast", {"similarity_results": None}) == defaults
    assert await preferences.of("coast") == defaults
    connection.close()
