"""The steps of indexing one part of a document. Each can be repeated: what was done already is not done twice."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from cragside.domain.indexing import Task


class PartIndexer(ABC):
    """Writes of a workspace that a worker does. A task of a version that is gone does nothing for it.

    What is down raises `ServiceUnavailable` with its name; what a text itself makes fail raises `ProcessingError`.
    """

    @abstractmethod
    async def embed(self, task: Task) -> None:
        """Make the part's text searchable. With a changed document's last part, the version before it is removed."""

    @abstractmethod
    async def begin_enrichment(self, task: Task) -> bool:
        """Mark the part as being enriched. False when there is nothing left to do for this task.

        When its version is gone, what is left of it in the graph is taken out. Waits while another worker enriches it.
        """

    @abstractmethod
    async def give_back(self, task: Task | None = None) -> None:
        """Have the task's part wait again that was begun and not ended; without a task, all such parts.

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
        Model calls run in parallel and without keeping other writers out; only the merging does.
        """

    @abstractmethod
    async def failed(self, task: Task, reason: str) -> None:
        """Record that the task is given up, and why."""
