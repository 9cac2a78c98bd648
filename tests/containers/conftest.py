import os
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.containers.engine import Engine
from tests.containers.images import Images
from tests.containers.report import say
from tests.containers.stack import Stack
from tests.services.requirement import stay_down
from tests.services.tools import Unavailable


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """A container engine that nobody else uses."""
    with ExitStack() as stack:
        started = Engine()
        try:
            started.start()
        except Unavailable as reason:
            say(f"NOT RUN: the compose file was not brought up, because no container engine could be had: {reason}")
            stay_down(f"no container engine could be had: {reason}", os.environ, "CONTAINERS")
        stack.callback(started.stop)
        say(f"dockerd {started.docker('version', '--format', '{{.Server.Version}}').strip()}, in a network of its own")
        yield started


@pytest.fixture(scope="session")
def stack(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The stack with empty volumes, not yet started."""
    began = time.monotonic()
    images = Images(engine)
    try:
        made = images.all()
    except Unavailable as reason:
        say(f"NOT RUN: the compose file was not brought up, because an image could not be built: {reason}")
        stay_down(f"an image could not be built: {reason}", os.environ, "CONTAINERS")
    say(f"images ({', '.join(images.told) or 'all built before'}): {time.monotonic() - began:.0f} s")
    stack = Stack(engine, made, tmp_path_factory.mktemp("compose"))
    stack.down("--volumes")
    yield stack
    stack.write(stack.variables)
    stack.down("--volumes")


def pytest_report_teststatus(report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, str] | None:
    """No dot for what has told its story already."""
    if report.when == "call" and report.passed and "containers" in report.keywords:
        return "passed", "", "PASSED"
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say at the end what no run of these tests can show."""
    from tests.containers.report import NEVER, SAID

    if SAID:
        terminalreporter.section("what the containers showed")
        for line in [*SAID, *(f"not shown: {line}" for line in NEVER)]:
            terminalreporter.write_line(line, yellow=line.startswith(("not shown", "NOT RUN")))
