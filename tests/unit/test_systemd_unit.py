"""The systemd unit is valid, and hides the machine from the service."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cragside.settings import load_settings

UNIT = Path(__file__).parents[2] / "packaging/cragside.service"


def test_the_service_accepts_the_variables_of_the_unit() -> None:
    variables = dict(re.findall(r"^Environment=(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE))
    assert load_settings(variables).home == Path("/var/lib/cragside")


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
