"""The systemd unit is valid, and hides the machine from the service."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cragside.settings import Settings, variable_of

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "packaging/cragside.service"


def test_the_unit_sets_known_variables() -> None:
    known = {variable_of(name) for name in Settings.model_fields}
    assert set(re.findall(r"^Environment=(\w+)=", UNIT.read_text(), re.MULTILINE)) <= known


def test_the_service_may_write_where_the_pages_put_its_files() -> None:
    unit = UNIT.read_text()
    opened = {
        f"{base}/{name}"
        for key, base in (("State", "/var/lib"), ("Logs", "/var/log"))
        for name in re.findall(rf"^{key}Directory=(\S+)$", unit, re.MULTILINE)
    }
    pages = "".join((ROOT / "docs/how-to" / name).read_text() for name in ("systemd.md", "several-users.md"))
    named = set(re.findall(r"RAG_\w+=(/var/\S+)/[^/\s`]+", pages)) | {"/var/lib/cragside"}
    assert "/var/log/cragside" in named
    assert named <= opened


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize(
    "check", [("verify",), ("security", "--offline=true", "--threshold=20")], ids=["verify", "security"]
)
def test_systemd_accepts_the_unit(check: tuple[str, ...], tmp_path: Path) -> None:
    # The program is not installed where the unit expects it.
    unit = tmp_path / "cragside.service"
    unit.write_text(UNIT.read_text().replace("/opt/cragside/bin/cragside", "/bin/true"))
    ran = subprocess.run(["systemd-analyze", *check, str(unit)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    if rated := re.search(r"Overall exposure level for .*: ([\d.]+)", ran.stdout):
        assert f"{rated[1]} of 10" in " ".join((ROOT / "docs/how-to/systemd.md").read_text().split())
