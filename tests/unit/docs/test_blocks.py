"""Blocks of the documentation that are no commands: settings are accepted, and data and code can be read."""

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from cragside.entrypoints.setting_files import given
from cragside.settings import load_settings

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# `console` is shown, `text` is output; tests/integration/test_guide_blocks.py runs `sh`.
SHOWN = {"console", "text", "mermaid", "sh", ""}


def blocks() -> Iterator[tuple[str, str, str]]:
    """The page, the language and the text of each block."""
    for page in PAGES:
        for language, text in re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE):
            yield page.relative_to(ROOT).as_posix(), language, text


CASES = [pytest.param(*block, id=f"{block[0]}-{n}") for n, block in enumerate(blocks()) if block[1] not in SHOWN]


@pytest.mark.parametrize(("page", "language", "text"), CASES)
def test_a_block_is_what_it_says(page: str, language: str, text: str, tmp_path: Path) -> None:
    if language == "json":
        json.loads(text)
    elif language == "python":
        ast.parse(text)
    elif language == "toml":
        tomllib.loads(text)
        (tmp_path / "cragside.toml").write_text(text)
        (tmp_path / "cragside.toml").chmod(0o600)
        load_settings(given({"RAG_HOME": str(tmp_path)}, tmp_path).values)
    else:
        assert language in {"yaml", "nginx", "ini", "http", "diff"}, f"{page} has a block of an unknown kind"
