import os
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from flight import Flight, say

from tests.services import cdk
from tests.services.ministack import VERSION, Ministack
from tests.services.requirement import stay_down
from tests.services.tools import Unavailable


@pytest.fixture(scope="session")
def emulator() -> Iterator[Ministack]:
    """An emulator of AWS that nobody else uses."""
    began = time.monotonic()
    with ExitStack() as stack:
        try:
            started = stack.enter_context(Ministack())
        except Unavailable as reason:
            stay_down(f"the emulator could not be had: {reason}", os.environ, "E2E")
        say(f"\nministack {VERSION} on Python {started.minor}, {started.url}: {time.monotonic() - began:.1f} s")
        yield started


@pytest.fixture(scope="session")
def flight(emulator: Ministack, tmp_path_factory: pytest.TempPathFactory) -> Flight:
    """dev, deployed into the emulator."""
    try:
        cdk.install()
    except Unavailable as reason:
        stay_down(f"the CDK's command line could not be had: {reason}", os.environ, "E2E")
    flight = Flight(emulator, tmp_path_factory.mktemp("flight"))
    flight.prepare()
    flight.deploy()
    return flight


def pytest_report_teststatus(report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, str] | None:
    """No dot for what has told its story already."""
    if report.when == "call" and report.passed and "e2e" in report.keywords:
        return "passed", "", "PASSED"
    return None
