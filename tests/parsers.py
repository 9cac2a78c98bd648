"""Child processes that read files, for several loaders in turn."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cragside.adapters.documents import loader
from cragside.adapters.documents.parsing import ParserProcesses


@contextmanager
def shared_processes() -> Iterator[ParserProcesses]:
    """Give every new loader the same processes, which it does not end: to start one takes longer than to read."""
    processes = ParserProcesses(seconds=60, memory=2**30)
    with pytest.MonkeyPatch.context() as replaced:
        replaced.setattr(loader, "ParserProcesses", lambda **_: processes)
        replaced.setattr(processes, "close", lambda: None)
        yield processes
    processes.close()
