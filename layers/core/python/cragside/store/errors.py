"""Errors of a ledger on any database, and the leases that its writers hold."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from cragside.domain.errors import ServiceUnavailable


class LedgerError(ServiceUnavailable):
    """The database failed, for `reason`. `unusable` completes the sentence 'The store …' with cause and remedy."""

    def __init__(self, reason: str, unusable: str, message: str = "") -> None:
        super().__init__("knowledge_base", message or f"The knowledge base {unusable}.")
        self.reason = reason
        self.unusable = unusable


class LedgerDamaged(LedgerError):
    """The database is damaged and must be replaced."""

    def __init__(self, reason: str, unusable: str) -> None:
        remedy = "Stop cragside, move the workspace's folder away, and ingest again."
        super().__init__(reason, unusable, f"The knowledge base is damaged ({reason}). {remedy}")


class StoreFormatError(LedgerError):
    """The store has the format of another version of cragside. `why` says which, and what to do."""

    def __init__(self, why: str) -> None:
        super().__init__(why, f"cannot be used: {why}")


@asynccontextmanager
async def failing_as_unavailable() -> AsyncIterator[None]:
    """Raise failures of the disk as `ServiceUnavailable`. Those of the ledger are that already."""
    try:
        yield
    except OSError as error:
        raise ServiceUnavailable("knowledge_base", f"The knowledge base failed: {error.strerror}.") from error


# The generation of a store that was removed.
REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of `holder` to write to what `name` stands for. `epoch` grows each time that somebody takes it."""

    name: str
    holder: str
    epoch: int


class LeaseLost(ServiceUnavailable):
    """Somebody else has taken the lease under which something was to be written."""

    def __init__(self) -> None:
        super().__init__("knowledge_base", "Another process has taken over. Nothing was written; try again.")


class StoreRemoved(LeaseLost):
    """Somebody removed the workspace. What its name stands for now has to be opened anew."""
