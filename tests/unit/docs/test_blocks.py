"""Blocks of the documentation that are no commands: settings are accepted, and data can be read."""

import json
from pathlib import Path

import pytest
import yaml

from cragside.entrypoints.setting_files import given
from cragside.settings import load_settings
from tests.blocks import Block, all_blocks

# tests/integration/test_guide_blocks.py runs `sh` and `python`, and compares `text` with what was printed.
LANGUAGES = {"sh", "python", "text", "json", "yaml", "toml", "dotenv", "nginx", "mermaid"}
SETTINGS = {"toml": "cragside.toml", "dotenv": ".env"}


def named(block: Block) -> str:
    return f"{block.page}: {block.first_line[:60]}"


def test_every_block_names_its_language() -> None:
    assert {block.language for block in all_blocks()} == LANGUAGES


@pytest.mark.parametrize("block", all_blocks("json", "yaml"), ids=named)
def test_a_block_of_data_can_be_read(block: Block) -> None:
    assert json.loads(block.text) if block.language == "json" else yaml.safe_load(block.text)


@pytest.mark.parametrize("block", all_blocks(*SETTINGS), ids=named)
def test_a_block_of_settings_is_accepted(block: Block, tmp_path: Path) -> None:
    file = tmp_path / SETTINGS[block.language]
    file.write_text(block.text)
    file.chmod(0o600)
    found = given({}, tmp_path)
    assert set(found.origins.values()) == {str(file)}
    load_settings(found.values)


@pytest.mark.parametrize("block", all_blocks("sh"), ids=named)
def test_a_block_of_commands_begins_with_no_prompt(block: Block) -> None:
    assert not block.first_line.startswith(("$ ", "# "))
