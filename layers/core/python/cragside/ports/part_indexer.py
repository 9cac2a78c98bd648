"""The steps of indexing one part of a document. Each step is idempotent."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from cragside.domain.indexing import Task


class PartIndexer(ABC):
    """The worker's writes to a workspace. A task of a deleted version does nothing.

    Raises `ServiceUnavailable` naming the component that is down, `ProcessingError` if the text cannot be indexed.
    """

    @abstractmethod
    async def embed(self, task: Task) -> None:
        """Make the part's text searchable. With a changed document's last part, the version before it is removed."""

    @abstractmethod
    async def begin_enrichment(self, task: Task) -> bool:
        """Mark the part as being enriched. False when there is nothing left to do for this task.

        If its version was deleted, removes its rest from the graph. Waits while another worker enriches the part.
        """

    @abstractmethod
    async def give_back(self, task: Task | None = None) -> None:
        """Return the task's unfinished part to the queue; without a task, all unfinished parts.

        Parts that another living worker enriches stay as they are.
        """

    @abstractmethod
    async def annotate(self, task: Task, tier2: Sequence[Mapping[str, Any]], tier3: Mapping[str, Any] | None) -> None:
        """Store tier 2 of each passage of the part, in their order, and tier 3 of the part."""

    @abstractmethod
    async def extend_graph(self, task: Task) -> None:
        """Extract entities and relations of the part's passages and merge them into the graph; the part is enriched.

        What the extraction gave is kept with tier 3 of the part as `extraction`: how many `entities` and `relations`,
        how many lines of the model's answers were `malformed`, and of how many passages the answer was `unusable`.
        Model calls run in parallel and without the graph's lease. Only the merge takes it.
        """

    @abstractmethod
    async def failed(self, task: Task, reason: str) -> None:
        """Record that the task is given up, and why."""
