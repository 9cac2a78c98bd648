import os
import signal
import time
from multiprocessing.context import ForkProcess
from pathlib import Path

import pytest

from cragside.domain.errors import ProcessingError
from cragside.entrypoints.proxy.processes import supervise

STOPPING = (signal.SIGTERM, signal.SIGINT)


def test_a_worker_that_ends_by_itself_ends_the_others_and_is_reported(tmp_path: Path) -> None:
    def work(number: int) -> None:
        (tmp_path / str(number)).write_text(str(os.getpid()))
        if number == 0:
            while not (tmp_path / "1").exists():
                time.sleep(0.01)
            return
        time.sleep(60)

    with pytest.raises(ProcessingError, match="worker ended"):
        supervise(2, work)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "1").read_text()), 0)


@pytest.mark.parametrize("number", STOPPING)
def test_a_signal_ends_all_workers_and_is_no_failure(tmp_path: Path, number: int) -> None:
    parent = os.getpid()

    def work(worker: int) -> None:
        (tmp_path / str(worker)).write_text(str(os.getpid()))
        if worker == 0:
            while not (tmp_path / "1").exists():
                time.sleep(0.01)
            time.sleep(0.2)
            os.kill(parent, number)
        time.sleep(60)

    supervise(2, work)
    for worker in ("0", "1"):
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / worker).read_text()), 0)


def test_a_worker_starts_with_default_signal_handlers(tmp_path: Path) -> None:
    def work(worker: int) -> None:
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        handlers = [signal.getsignal(number) for number in STOPPING]
        (tmp_path / "seen").write_text(f"{handlers == [signal.SIG_DFL] * 2} {blocked & set(STOPPING)}")

    with pytest.raises(ProcessingError):
        supervise(1, work)
    assert (tmp_path / "seen").read_text() == "True set()"


@pytest.mark.parametrize("number", STOPPING)
def test_a_signal_while_the_workers_are_started_ends_them_too(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    started: list[ForkProcess] = []
    start = ForkProcess.start

    def signalled(worker: ForkProcess) -> None:
        start(worker)
        started.append(worker)
        os.kill(os.getpid(), number)

    monkeypatch.setattr(ForkProcess, "start", signalled)
    missed: list[int] = []
    before = {each: signal.signal(each, lambda got, _: missed.append(got)) for each in STOPPING}
    try:
        supervise(2, lambda _: time.sleep(3))
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    assert missed == []
    assert [worker.is_alive() for worker in started] == [False] * 2


def test_a_worker_that_cannot_be_started_ends_those_that_were(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[ForkProcess] = []
    start = ForkProcess.start

    def once(worker: ForkProcess) -> None:
        if started:
            raise BlockingIOError("no more processes")
        start(worker)
        started.append(worker)

    monkeypatch.setattr(ForkProcess, "start", once)
    with pytest.raises(BlockingIOError):
        supervise(2, lambda _: time.sleep(60))
    assert not started[0].is_alive()
