import time
from collections.abc import Iterator

import pytest
from flight import Flight, say

from tests.services.ministack import VERSION, Ministack


@pytest.fixture(scope="session")
def flight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flight]:
    """dev, deployed into an emulator of its own."""
    began = time.monotonic()
    with Ministack() as emulator:
        say(f"\nministack {VERSION} on Python {emulator.minor}, {emulator.url}: {time.monotonic() - began:.1f} s")
        flight = Flight(emulator, tmp_path_factory.mktemp("flight"))
        flight.prepare()
        flight.deploy()
        yield flight


def pytest_report_teststatus(report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, str] | None:
    """No dot for what has told its story already."""
    if report.when == "call" and report.passed and "e2e" in report.keywords:
        return "passed", "", "PASSED"
    return None
