"""The console's parts of other projects are what their lock file and the script make."""

from pathlib import Path

import pytest

from tools.vendor_console import VENDOR, vendor

pytestmark = pytest.mark.clients


def test_the_committed_parts_are_those_that_the_script_makes(tmp_path: Path) -> None:
    vendor(tmp_path)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_bytes() for path in VENDOR.iterdir()}
