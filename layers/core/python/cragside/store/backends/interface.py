"""Interface of a database that keeps workspaces."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cragside.domain.indexing import DocumentKey, Stored

if TYPE_CHECKING:
    from cragside.store.exchange import Batches
    from cragside.store.ledger import Ledger
    from cragside.store.storages import GraphStorage, ValueStorage, VectorStorage


@dataclass(frozen=True, slots=True)
class Storages:
    """The classes of LightRAG's storages. LightRAG makes instances, whose configuration has the store's folder."""

    values: "type[ValueStorage]"
    vectors: "type[VectorStorage]"
    graph: "type[GraphStorage]"
    # The chosen classes of LightRAG by their roles: kv, vector, graph and doc_status. Empty where there is no choice.
    names: Mapping[str, str] = field(default_factory=dict)


class Backend(ABC):
    """Keeps the stores of workspaces. A store is known by its folder, whether or not the database has files there."""

    @abstractmethod
    def folder_of(self, home: Path, workspace: str) -> Path:
        """The folder of a workspace below a home, whether or not it has a store.

        Raises `ServiceUnavailable` when that cannot be told.
        """

    def files_of(self, folder: Path) -> Path:
        """A folder that may be made for the files of a store; where the database has none, one that is there."""
        return folder

    def place_of(self, folder: Path, generation: str) -> str:
        """The key by which LightRAG's storages find the open store of a folder. It differs between databases."""
        return str(folder)

    @abstractmethod
    async def names(self, home: Path) -> list[str]:
        """The workspaces below a home that have a store, in order."""

    @abstractmethod
    async def has_store(self, folder: Path) -> bool:
        """Return True if a folder has a store.

        Raises `OSError`, and `ServiceUnavailable` when something else has the place of a store.
        """

    @abstractmethod
    async def open_ledger(
        self, folder: Path, workspace: str, *, search_text: Callable[[str], str], read_only: bool = False
    ) -> "Ledger":
        """The ledger of a folder, which is made unless it is only read. Open it before LightRAG's storages.

        `search_text` gives what full-text search sees of a text. Raises `LedgerError` and
        `OSError`.
        """

    @abstractmethod
    def storages(self) -> Storages:
        """LightRAG's storages. The first call imports LightRAG, which takes a second or two."""

    @abstractmethod
    async def stored(self, folder: Path, keys: Collection[DocumentKey]) -> Stored:
        """Measure a store and the sizes of these documents, without opening it.

        Raises `LedgerError`.
        """

    @abstractmethod
    async def take_away(self, folder: Path) -> None:
        """Remove a store that others may have open, whole or not at all, while the caller holds its leases.

        They notice it by `Driver.state`, and get no lease of it any more. Raises `OSError`.
        """

    @abstractmethod
    async def sweep(self, home: Path) -> None:
        """Delete what an interrupted `take_away` left below a home."""

    @abstractmethod
    async def remove(self, folder: Path) -> None:
        """Remove a store that nobody has open. It is no error when there is none."""

    async def disagreement(self, folder: Path) -> str:
        """Describe how another database's share of a store differs from its documents; "" if none does.

        Raises `LedgerError`.
        """
        return ""

    @abstractmethod
    def dump(self, folder: Path) -> "Batches":
        """All that a store holds, its leases aside, as of one moment, however long the reading takes.

        Raises `LedgerError`.
        """

    @abstractmethod
    async def load(self, folder: Path, batches: "Batches", *, search_text: Callable[[str], str]) -> None:
        """Fill a store with what `dump` of any database gives. The store has to be empty, and nobody else may use it.

        Raises `LedgerError`.
        """
