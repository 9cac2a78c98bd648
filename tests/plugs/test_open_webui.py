"""Open WebUI runs the filter: its real table, loader and runner of filters, without its web server."""

from pathlib import Path
from typing import Any

import pytest

from tests.plugs.conftest import LAMP, SOURCES, Run
from tests.services import tools

pytestmark = pytest.mark.hosts

QUESTION = "What does the lamp burn?"
# What the program loads, and no more: all that Open WebUI asks for is some gigabytes.
_PINNED = Path(__file__).parent / "open_webui.txt"


def open_webui() -> Path:
    """The Python with Open WebUI, installed at the first time."""
    cache = tools.cache("hosts-open-webui")
    with tools.exclusive(cache):
        return tools.environment(cache, ("--no-deps", *_PINNED.read_text().split()))


def unchanged(told: dict[str, Any], text: str) -> bool:
    return bool(told["body"] == {"model": "m", "messages": [{"role": "user", "content": text}]})


def test_the_filter_adds_evidence_and_shows_it(run: Run) -> None:
    file = SOURCES / "cragside/plugins/open_webui_filter.py"
    told = run("open_webui_plug.py", str(file), python=open_webui())
    assert told["header"]["title"] == "cragside"
    chats = told["chats"]
    assert chats["kind"] == "filter"

    asked = chats["asked"]
    evidence, question = asked["body"]["messages"]
    assert LAMP in evidence["content"]
    assert question == {"role": "user", "content": QUESTION}
    begun, source, done = asked["events"]
    assert begun["data"] == {"description": "Looking for evidence", "done": False}
    assert source["type"] == "source"
    assert source["data"]["document"] == [LAMP]
    assert source["data"]["metadata"][0]["source"] == source["data"]["source"]["id"]
    assert source["data"]["source"]["name"]
    assert done["data"] == {"description": "1 passage of evidence (local)", "done": True}

    assert unchanged(chats["other"], QUESTION)
    assert chats["other"]["events"] == []
    assert unchanged(chats["refused"], f"/rag {QUESTION}")
    assert chats["refused"]["events"][-1]["data"] == {"description": "No evidence (unauthorized)", "done": True}
    assert unchanged(chats["command"], f"/docs {QUESTION}")
    assert chats["command"]["events"][-1]["data"] == {"description": "No evidence (processing_error)", "done": True}
