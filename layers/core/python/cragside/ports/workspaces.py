"""The workspaces, and what each of them stores."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from cragside.domain.indexing import DocumentKey, Stored
from cragside.ports.knowledge_graph import KnowledgeGraph
from cragside.ports.library import Library
from cragside.ports.part_indexer import PartIndexer
from cragside.ports.rag_repository import RagRepository


@dataclass(frozen=True, slots=True)
class Workspace:
    """What one workspace stores. An unknown workspace is empty; its first document makes its store.

    `work` is what a worker writes with. Where `read_only`, all that writes raises `ReadOnlyStore`.
    """

    name: str
    documents: Library
    passages: RagRepository
    graph: KnowledgeGraph
    work: PartIndexer
    read_only: bool


class Workspaces(Protocol):
    """Opens workspaces, each of them once."""

    async def open(self, name: str) -> Workspace:
        """A workspace. Its store is opened at the first use, and reading an unknown one leaves no trace.

        Each use may raise `ServiceUnavailable` or `ConfigurationError` when the store cannot be opened. A request
        that times out does not cancel the opening.
        """
        ...

    async def names(self) -> list[str]:
        """The workspaces that have a store, in order."""
        ...

    async def stored(self, workspace: str, keys: Collection[DocumentKey] = ()) -> Stored:
        """How much is stored in a workspace, without opening it. Raises `ServiceUnavailable` when it is unreadable.

        `Stored.sizes` maps each of the `keys` that has a document to the document's size in bytes.
        """
        ...

    async def check(self, workspace: str, *, whole: bool = False) -> None:
        """Raises `ServiceUnavailable` when a workspace's store is damaged, with how and what to do.

        Cheap: it reports the last known state. With `whole` it reads everything that is stored.
        """
        ...

    async def prepare(self, workspace: str) -> None:
        """Open a workspace, and have its embedding model loaded.

        Raises like any use, and if the embedding model does not answer.
        """
        ...

    async def remove(self, workspace: str) -> bool:
        """Remove a workspace's documents and its memory, whoever has it open. False when it has no store.

        Its name can be used again at once. Raises `ReadOnlyStore` for a baked store, and `ServiceUnavailable`.
        """
        ...

    async def reindex(self, workspace: str, progress: Callable[[str], None]) -> int:
        """Build a workspace anew with the configured embedding model. Returns the number of its sources.

        `progress` is called with the name of each finished source. The old store stays until the new one is complete.
        Raises `ServiceUnavailable("reindex", ...)` while somebody else does the same, and `ReadOnlyStore`.
        """
        ...

    async def disagreement(self, workspace: str) -> str:
        """How another database's share of a workspace or of its memory differs from its documents, "" if none does.

        It may when one of the databases was restored from a backup or emptied. `reindex` mends it.
        Raises `ServiceUnavailable`.
        """
        ...
