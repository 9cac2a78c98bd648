import os
import signal
import time
from pathlib import Path

import pytest

from cragside.domain.errors import ProcessingError
from cragside.entrypoints.proxy.workers import supervise


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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_workers_and_is_no_failure(tmp_path: Path, number: int) -> None:
    parent = os.getpid()

    def work(worker: int) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
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
