"""What sets a checkout up is pinned with hashes, and names no registry but the public ones."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_uv_is_one_version_with_hashes() -> None:
    lines = [line for line in (ROOT / "tools/uv.txt").read_text().splitlines() if not line.startswith("#")]
    assert re.fullmatch(r"uv==\d+\.\d+\.\d+ \\", lines[0])
    assert len(lines) > 10
    assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line) for line in lines[1:])
    script = (ROOT / "tools/install_uv.sh").read_text()
    assert script.count("pip install") == script.count("$pinned") == 2
    assert "--require-hashes" in script


@pytest.mark.parametrize("folder", ["cdk", "typescript_client"])
def test_what_comes_from_npm_is_locked_with_hashes(folder: str) -> None:
    asked = json.loads((ROOT / "tools" / folder / "package.json").read_text())["dependencies"]
    locked = json.loads((ROOT / "tools" / folder / "package-lock.json").read_text())["packages"]
    assert locked.pop("")["dependencies"] == asked
    for name, version in asked.items():
        assert locked[f"node_modules/{name}"]["version"] == version
    for package in locked.values():
        assert package["integrity"].startswith("sha512-")
        assert "resolved" not in package


def test_nothing_is_installed_from_npm_without_the_lock() -> None:
    for path in (ROOT / "Makefile", ROOT / "tests/services/npm.py"):
        text = path.read_text()
        assert "npx" not in text
        assert "--ignore-scripts" in text
        assert not re.search(r"npm.{0,20}install", text)
