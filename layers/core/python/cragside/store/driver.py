"""Interface of a ledger to its database, and the changes that it writes there."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from cragside.ports.embedder import Vectors
from cragside.store.chunking import CutPart, StoredPart
from cragside.store.errors import Lease, LeaseLost

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
class PartVectors:
    """Holds the rows of a document's part, and their vectors in the same order."""

    document_id: str
    part: StoredPart
    rows: Mapping[str, Row]
    vectors: Vectors


@dataclass(frozen=True, slots=True)
class WhileCurrent:
    """Applies while the versions of all parts are current, and marks each part as enriched.

    Beside each part is the tally of its extraction.
    """

    parts: Sequence[tuple[StoredPart, Mapping[str, int]]]


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
# Whoever takes the lease waits until this transaction has ended.
_CHECK = f"SELECT 1 FROM crag.lease WHERE {HELD} FOR SHARE"  # noqa: S608 (our own)


@dataclass(slots=True)
class Changed:
    """Documents that a transaction changes, for a list of them that others read."""

    # A document that has another text, name or description.
    document: str | None = None
    removed: str | None = None
    # Versions whose parts have another state, a document, or all of them.
    status_of_versions: tuple[int, ...] = ()
    status_of_document: str | None = None
    status_of_all: bool = False


class Since(NamedTuple):
    """A store's state, the model that its vectors are of, and its generation."""

    state: str
    embedding_model: str | None
    generation: str


class Sizes(NamedTuple):
    """The sizes of a store that each database counts in its own way, as `KnowledgeStatus` has them."""

    passages: int
    entities: int
    relations: int
    lightrag_workspace: str = ""
    size: int | None = None
    waiting_changes: int = 0


class Driver(ABC):
    """Runs a ledger's statements on the tables of one workspace, and does what each database does in its own way.

    Statements are PostgreSQL's. `$1` is the number of the store, and the values follow. Failures are `LedgerError`.
    """

    # LightRAG's classes that the store was made for, by their roles; empty where there is no choice.
    storages: Mapping[str, str] = {}

    @property
    @abstractmethod
    def place(self) -> str:
        """Return the place of the store, for an operator."""

    @property
    def read_only(self) -> bool:
        """Return True if nothing can be written."""
        return False

    @abstractmethod
    async def all(self, sql: str, *values: Any) -> list[Any]:
        """Return all rows of a query."""

    @abstractmethod
    async def one(self, sql: str, *values: Any) -> Any:
        """Return the first row of a query, or None."""

    async def all_aside(self, sql: str, *values: Any) -> list[Any]:
        """Return all rows of a query that looks at the whole store. Other requests go on meanwhile."""
        return await self.all(sql, *values)

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

    # The whole store.

    @abstractmethod
    async def state(self) -> str:
        """Return a token that changes whenever content changes, whoever writes it."""

    def state_at_hand(self) -> str | None:
        """Return `state` if it is known without waiting, else None. Raises `LedgerError`."""
        return None

    @abstractmethod
    async def generation(self) -> str:
        """Return a token that changes when the whole content was replaced."""

    async def since(self, state: str) -> Since | None:
        """Return the state of the store, None if it is still `state`."""
        if (now := await self.state()) == state:
            return None
        return Since(now, await self.embedding_model(), await self.generation())

    async def opened_with(self) -> tuple[str | None, str]:
        """Return the embedding model and the generation, as they are when the store is opened."""
        return await self.embedding_model(), await self.generation()

    @abstractmethod
    def sizes(self) -> AbstractAsyncContextManager[Sizes]:
        """Count the contents. Queries in the block see the state that was counted, as in a `snapshot`."""

    @abstractmethod
    async def replace_by(self, other: Self, leases: Sequence[Lease]) -> None:
        """Take over another store, graph and vectors included, for every process that reads this one.

        Raises `LeaseLost` if one of the leases was taken by another since.
        """

    @abstractmethod
    async def catch_up(self) -> None:
        """Have other databases hold all that was committed. Whoever changes the graph calls this first.

        Raises `LedgerError` while one of them is out of reach, and when it has what was there at another time.
        """

    @abstractmethod
    async def catch_up_graph(self) -> None:
        """Have the graph be all that was committed. Whoever shows it calls this first.

        The graph lags behind where another database has it. Raises `LedgerError` as `catch_up` does, and when it takes
        more than a few seconds.
        """

    @abstractmethod
    async def flush(self) -> None:
        """Have everything on the disk that was written, so that not even a power cut takes it."""

    @property
    def reported_damage(self) -> str:
        """Describe the damage that the database has reported; "" for none."""
        return ""

    async def damage(self, *, whole: bool = False) -> str:
        """Describe the damage, "" for none. With `whole` everything is read now, however long it takes."""
        return ""

    @abstractmethod
    async def mark_untidy(self) -> None:
        """Note that something was removed whose disk is not given back yet."""

    @abstractmethod
    def tidy(self) -> None:
        """Free unused disk space soon."""

    async def is_untidy(self) -> bool:
        """Return True if removed rows still hold disk space, even after a process was killed."""
        return False

    @property
    def is_tidying(self) -> bool:
        """Return True if tidying is asked for or under way."""
        return False

    @abstractmethod
    async def close(self) -> None:
        """End what is under way. `release` follows when nobody reads any more."""

    @abstractmethod
    def release(self) -> None:
        """Give the connection back."""

    # Leases, which are locks.

    @abstractmethod
    async def take_lease(self, name: str, holder: str, seconds: float) -> Lease | None:
        """Take the lease of this name for some seconds, with a new epoch. None while another living holder has it.

        `is_gone` says which holders no longer live. Raises `StoreRemoved`.
        """

    @abstractmethod
    async def renew_lease(self, lease: Lease, seconds: float) -> bool:
        """Have a lease last for some seconds from now. False if it was taken by another since."""

    @abstractmethod
    async def return_lease(self, lease: Lease) -> None:
        """Let others take a lease from now on. Does nothing if it was taken by another since."""

    async def check_leases(self, leases: Sequence[Lease]) -> None:
        """Raise `LeaseLost` if one of the leases was taken by another since. Only within a transaction."""
        for lease in leases:
            if await self.one(_CHECK, lease.name, lease.holder, lease.epoch) is None:
                self.note_lost_lease()
                raise LeaseLost

    @abstractmethod
    def note_lost_lease(self) -> None:
        """Count a write that came after its lease was lost."""

    # What LightRAG reads.

    @abstractmethod
    async def embedding_model(self) -> str | None:
        """Return the model that built the store, None while it has no vectors."""

    @abstractmethod
    async def stored_dimensions(self) -> int | None:
        """Return the length of the vectors, None while there are none."""

    @abstractmethod
    async def bind(self, model: str, dimensions: int | None) -> None:
        """Note the model of a store that has none yet, and the length of its vectors."""

    @abstractmethod
    async def passages_with_documents(
        self, ids: Sequence[str]
    ) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any], Collection[str]]:
        """Return rows of passages of any version, of their documents and of their parts.

        The names that several of the documents have follow. See `FOUND`, `OWNERS`, `PARTS` and `SHARED_NAMES`.
        """

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
