import os
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from flight import Flight, say, stay_down

from tests.services import cdk
from tests.services.ministack import VERSION, Ministack
from tests.services.tools import Unavailable


@pytest.fixture(scope="session")
def flight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flight]:
    """dev, deployed into an emulator of its own."""
    began = time.monotonic()
    with ExitStack() as stack:
        try:
            cdk.install()
            emulator = stack.enter_context(Ministack())
        except Unavailable as reason:
            stay_down(f"the emulator or the CDK's command line could not be had: {reason}", os.environ)
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
