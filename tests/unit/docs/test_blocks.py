"""Blocks of the documentation that are no commands: settings are accepted, and data can be read."""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from cragside.bootstrap import Container
from cragside.entrypoints.http.app import create_app
from cragside.entrypoints.setting_files import completed_environment
from cragside.settings import load_settings
from tests.blocks import ROOT, Block, all_blocks

SETTINGS = {"toml": "cragside.toml", "dotenv": ".env"}


def named(block: Block) -> str:
    return f"{block.page}: {block.first_line[:60]}"


@pytest.mark.parametrize("block", all_blocks("json", "yaml"), ids=named)
def test_a_block_of_data_can_be_read(block: Block) -> None:
    assert json.loads(block.text) if block.language == "json" else yaml.safe_load(block.text)


@pytest.mark.parametrize("block", all_blocks(*SETTINGS), ids=named)
def test_a_block_of_settings_is_accepted(block: Block, tmp_path: Path) -> None:
    file = tmp_path / SETTINGS[block.language]
    file.write_text(block.text)
    file.chmod(0o600)
    found = completed_environment({}, tmp_path)
    assert set(found.origins.values()) == {str(file)}
    load_settings(found.values)


async def test_the_requests_of_the_http_page_are_answered_as_it_shows(tmp_path: Path) -> None:
    container = Container(load_settings({"RAG_HOME": str(tmp_path)}))
    transport = httpx.ASGITransport(create_app(container))
    route, answered = "", dict[str, Any]()
    requests, answers = 0, 0
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            page = (ROOT / "docs/api.md").read_text()
            for heading, text in re.findall(r"^## ([^\n]+)|^```json\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
                example = json.loads(text) if text else {}
                if heading:
                    posted = re.match(r"`POST (\S+)`", heading)
                    route, answered = posted[1] if posted else "", {}
                elif route and example.keys() & {"query", "items", "text"}:
                    response = await http.post(route, json=example)
                    assert response.status_code < 300, f"{route} {text}: {response.text}"
                    answered, requests = response.json(), requests + 1
                elif answered:
                    assert {name: answered[name] for name in example} == example
                    answers += 1
    finally:
        await container.close()
    assert requests >= 6
    assert answers >= 2
