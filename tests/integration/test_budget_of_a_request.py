"""`benchmarks.budget` on a real server, with few requests."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.harness import ROOT


def test_a_plain_prompt_passes_the_layers_of_the_proxy_and_no_others(tmp_path: Path) -> None:
    report = tmp_path / "budget.json"
    command = [sys.executable, "-m", "benchmarks.budget", "--quick", "--only", "plain", "--json", str(report)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    saved = json.loads(report.read_text())
    [found] = saved["details"]["plain"]["here"]
    assert "load before" in saved["machine"]
    used = {layer for layer, share in found["layers"].items() if share["calls"] >= 1}
    assert {"connection", "access", "limits", "metrics", "prompt", "relay"} <= used
    assert not used & {"retrieval", "grading", "LangGraph"}
    assert sum(share["blocks"] for share in found["layers"].values()) > 0
    assert "| relay " in ran.stdout
