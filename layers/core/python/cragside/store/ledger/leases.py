"""Leases: who may write to a part of a workspace, and until when."""

from dataclasses import dataclass

from cragside.domain.errors import ServiceUnavailable

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
