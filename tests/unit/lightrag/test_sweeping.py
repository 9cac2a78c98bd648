"""The log tells when a deletion leaves the graph to a worker."""

from typing import Any

import pytest

from cragside.store.errors import LedgerError
from cragside.store.part_indexer import sweep_if_free


class Store:
    """A store whose graph cannot be written."""

    workspace = "default"

    def __init__(self, failure: Exception) -> None:
        self.failure = failure
        self.ledger = self

    async def sweeps(self) -> bool:
        return True

    def writing_if_free(self) -> Any:
        raise self.failure


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (LedgerError("Neo4j does not answer", "is out of reach"), "Neo4j does not answer"),
        (TimeoutError(), "that takes long"),
        (KeyError("a text"), "KeyError"),
    ],
)
async def test_the_log_says_why_a_workspace_is_swept_later(
    failure: Exception, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    store: Any = Store(failure)
    await sweep_if_free(store)
    assert caplog.messages == [f"Workspace default is swept later: {said}"]
