"""Interface of a ledger to its database, and the changes that it writes there."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Self

from cragside.ports.embedder import Vectors
from cragside.store.chunking import CutPart, StoredPart
from cragside.store.errors import Lease

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class VectorChange:
    """Changed rows of one of LightRAG's vector storages.

    `updated` rows keep their vectors, as their texts stay; `written` rows have the rows of `vectors`, in their order.
    """

    removed: Sequence[str]
    updated: Mapping[str, Row]
    written: Mapping[str, Row]
    vectors: Vectors


@dataclass(frozen=True, slots=True)
class MentionChange:
    """Changed mentions of entities (`kind` is "entity") or of relations (pairs of name and passage)."""

    kind: str
    without_passages: Sequence[str]
    without_names: Sequence[str]
    added: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class GraphChange:
    """All writes of a merge. A value that is None is removed; the ends of an edge are in alphabetical order.

    `values` and `vectors` are by the namespaces of LightRAG's storages.
    """

    nodes: Mapping[str, Row | None] = field(default_factory=dict)
    edges: Mapping[tuple[str, str], Row | None] = field(default_factory=dict)
    vectors: Mapping[str, VectorChange] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, dict[str, Any] | None]] = field(default_factory=dict)
    mentions: Sequence[MentionChange] = ()


@dataclass(frozen=True, slots=True)
class WhileCurrent:
    """Applies while the part's version is current, and marks the part as enriched with the tally of its extraction."""

    part: StoredPart
    tally: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class OnceGone:
    """Applies while the part's version is gone, and removes what is left of the part."""

    part: StoredPart


@dataclass(frozen=True, slots=True)
class Always:
    """Applies whatever has become of the part."""


ChangeGuard = WhileCurrent | OnceGone | Always

# The row of a lease, as long as nobody else has taken it.
HELD = "store = $1 AND name = $2 AND holder = $3 AND epoch = $4"


@dataclass(slots=True)
class Changed:
    """Documents that a transaction changes, for a list of them that others read."""

    # A document that has another text, name or description.
    document: str | None = None
    removed: str | None = None
    # A version whose parts have another state, a document, or all of them.
    status_of_version: int | None = None
    status_of_document: str | None = None
    status_of_all: bool = False


class Driver(ABC):
    """Statements on the tables of one workspace, and what each database says in its own words.

    Statements are PostgreSQL's. `$1` is the number of the store, and the values follow. Failures are `LedgerError`.
    """

    @property
    def damage(self) -> str:
        """Describe the damage that the database has reported; "" for none."""
        return ""

    @abstractmethod
    async def all(self, sql: str, *values: Any) -> list[Any]:
        """Return all rows of a query."""

    @abstractmethod
    async def one(self, sql: str, *values: Any) -> Any:
        """Return the first row of a query, or None."""

    async def value(self, sql: str, *values: Any) -> Any:
        """Return the first column of the first row of a query, or None."""
        row = await self.one(sql, *values)
        return None if row is None else row[0]

    async def execute(self, sql: str, *values: Any) -> None:
        """Run a statement."""
        await self.value(sql, *values)

    @abstractmethod
    async def many(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        """Run a statement for each of the rows, with the store's number ahead. Only within a transaction."""

    @abstractmethod
    def transaction(self) -> AbstractAsyncContextManager[None]:
        """Commit everything in the block or nothing, and change the state of the store that any process shows."""

    @abstractmethod
    def snapshot(self) -> AbstractAsyncContextManager[None]:
        """Have the queries in the block see one state, whatever others write."""

    @abstractmethod
    async def keep(self) -> None:
        """Have what was committed where nobody who changes a log of the database takes it."""

    @abstractmethod
    async def show(self, changed: Changed) -> None:
        """Change the list of documents that others read, in the transaction that is under way."""

    @abstractmethod
    async def mark_untidy(self) -> None:
        """Note that something was removed whose disk is not given back yet."""

    # Leases, which are locks.

    @abstractmethod
    async def take_lease(self, name: str, holder: str, seconds: float) -> int | None:
        """Take a lease: its epoch, or None while another living holder has it. Raises `StoreRemoved`."""

    @abstractmethod
    async def renew_lease(self, lease: Lease, seconds: float) -> bool:
        """Have a lease last for some seconds from now. False if it was taken by another since."""

    @abstractmethod
    async def return_lease(self, lease: Lease) -> None:
        """Let others take a lease from now on."""

    @abstractmethod
    def note_lost_lease(self) -> None:
        """Count a write that came after its lease was lost."""

    # What LightRAG reads.

    @abstractmethod
    async def embedding_model(self) -> str | None:
        """Return the model that built the store, None while it has no vectors."""

    @abstractmethod
    async def vector_length(self) -> int | None:
        """Return the length of the vectors, None while there are none."""

    @abstractmethod
    async def bind(self, model: str, dimensions: int | None) -> None:
        """Note the model of a store that has none yet, and the length of its vectors."""

    @abstractmethod
    async def add_passages(self, version: int, parts: Sequence[CutPart]) -> None:
        """Write the passages of a version with their texts. Those that are there have other places or are the same."""

    @abstractmethod
    async def erase_texts(self, ids: Sequence[str]) -> None:
        """Take passages out of searches and their texts out of LightRAG's storages."""

    @abstractmethod
    async def copy_passages(self, old: Self, old_version: int, version: int) -> None:
        """Copy the passages of another store's version, with their texts and with what models said of them."""

    @abstractmethod
    async def write_passage_vectors(self, rows: Mapping[str, Row], searched: Sequence[str], vectors: Vectors) -> None:
        """Make passages searchable. `searched` is what full-text search sees of them."""

    @abstractmethod
    async def change_graph(self, change: GraphChange, model: str) -> None:
        """Write a change of the graph but for its mentions."""

    # Recorded queries.

    @abstractmethod
    async def save_query(self, key: str, text: str, created_at: str, most: int) -> None:
        """Record a query without waiting for other writers; beyond `most` the oldest are forgotten."""
