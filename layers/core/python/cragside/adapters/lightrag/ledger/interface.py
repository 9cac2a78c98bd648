"""The interface of the ledger of a workspace."""

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Self

from cragside.adapters.lightrag.ledger.catalogue import Catalogue
from cragside.adapters.lightrag.ledger.changes import ChangeGuard, GraphChange, Row
from cragside.adapters.lightrag.ledger.entries import Entry, StoredPart
from cragside.adapters.lightrag.ledger.leases import Lease
from cragside.domain.document import SourceText
from cragside.domain.indexing import Task
from cragside.domain.query import Query
from cragside.ports.embedder import Vectors
from cragside.ports.workspaces import KnowledgeStatus


class Since(NamedTuple):
    """A store's state, the model that its vectors are of, and its generation."""

    state: str
    embedding_model: str | None
    generation: str


class Ledger(Catalogue):
    """The documents of a workspace, their versions, parts and passages, and what is known of them.

    Each method that writes is one transaction. All may raise `LedgerError`.
    """

    # Documents.

    @abstractmethod
    async def enter(self, entry: Entry) -> None:
        """Make a text the current version of its document, and give the document the source and name of the text.

        The version that was current stays searchable until the new one is. If an earlier version of this text still
        exists, its passages are reused. Otherwise the text is indexed again.
        """

    @abstractmethod
    async def retire(self, document_id: str) -> bool:
        """Forget a document: no version of its text is kept, and its source is free. False when there is none.

        Its keys remain, by which its share of the graph is found.
        """

    @abstractmethod
    async def claim(self, document_id: str, source: str, name: str) -> None:
        """Give a document a source and a name. A title equal to the old name changes too.

        All of its versions get them: one of them may become the current one again.
        """

    @abstractmethod
    async def describe(self, document_id: str, source: SourceText, track: str) -> None:
        """Give a current document the source, the name, the title and the metadata of a text, and the track.

        If its passages are searched with another title then, its parts wait to be embedded again. They are found by
        the earlier one until then.
        """

    @abstractmethod
    async def want_enrichment(self, document_id: str) -> None:
        """Have a current document enriched that was accepted without."""

    @abstractmethod
    async def requeue(self, document_id: str | None, *, force: bool) -> None:
        """Have what failed or is under way wait again; with `force` everything. None stands for all documents."""

    @abstractmethod
    async def drop_swept(self) -> None:
        """Remove versions that are gone and of which the graph has nothing any more. The ledger is untidy then."""

    # Parts.

    @abstractmethod
    async def begin_enrichment(self, part: StoredPart) -> None:
        """Mark a part as being enriched."""

    @abstractmethod
    async def mark_failed(self, part: StoredPart, stage: str, reason: str) -> None:
        """Record that a stage of indexing a part is given up, and why."""

    @abstractmethod
    async def give_back(self, part: StoredPart) -> None:
        """Have a part wait again that is marked as being enriched."""

    @abstractmethod
    async def annotate(
        self, part: StoredPart, tier2: Sequence[Mapping[str, Any]], tier3: Mapping[str, Any] | None
    ) -> None:
        """Store tier 2 of each passage of a part, in their order, and tier 3 of the part."""

    @abstractmethod
    async def enter_vectors(
        self, task: Task, part: StoredPart, rows: Mapping[str, Row], vectors: Vectors, model: str
    ) -> None:
        """Make the passages of a part searchable. A changed document's last part removes the earlier version.

        `vectors` are by `model`, in the order of `rows`. Raises `ServiceUnavailable` when the store has vectors of
        another model.
        """

    @abstractmethod
    async def apply(self, change: GraphChange, guard: ChangeGuard, model: str) -> bool:
        """Change the graph and the guard's part. Returns False and changes nothing if the guard does not hold.

        Raises `ServiceUnavailable` when the store has vectors of another model.
        """

    async def catch_up(self) -> None:
        """Have other databases hold all that was committed. Whoever changes the graph calls this first.

        Raises `LedgerError` while one of them is out of reach, and when it has what was there at another time.
        """

    async def catch_up_graph(self) -> None:
        """Have the graph be all that was committed. Whoever shows it calls this first.

        The graph lags behind where another database has it. Raises `LedgerError` as `catch_up` does, and when it takes
        more than a few seconds.
        """

    @abstractmethod
    async def naming(self, kind: str, name: str, going: Collection[str], most: int) -> list[str]:
        """Those of the passages `going` that mention an entity or a relation, and at most `most` others."""

    # Leases.

    @abstractmethod
    async def take_lease(self, name: str, holder: str, seconds: float) -> Lease | None:
        """Take the lease of this name for some seconds, with a new epoch. None while another living holder has it.

        `is_gone` says which holders no longer live.
        """

    @abstractmethod
    async def renew_lease(self, lease: Lease, seconds: float) -> bool:
        """Have a lease last for some seconds from now. False if it was taken by another since."""

    @abstractmethod
    async def return_lease(self, lease: Lease) -> None:
        """Let others take a lease from now on. Does nothing if it was taken by another since."""

    @abstractmethod
    def under(self, *leases: Lease) -> Self:
        """This ledger for whoever holds leases: its writes raise `LeaseLost` once one was taken by another.

        A write checks the leases in its own transaction. Leases that have expired but were not taken are good.
        """

    # Vectors.

    @abstractmethod
    async def embedding_model(self) -> str | None:
        """The model that built the store, None while it has no vectors."""

    @abstractmethod
    async def dimensions(self) -> int | None:
        """The length of the vectors, None while there are none."""

    @abstractmethod
    async def kept_vectors(self, model: str, texts: Sequence[str]) -> dict[str, Vectors]:
        """The vectors by the texts that the cache has."""

    @abstractmethod
    async def keep_vectors(
        self, model: str, document_id: str, texts: Sequence[str], vectors: Vectors, *, most: int
    ) -> None:
        """Keep vectors in the cache for as long as the document has this text, `most` of all documents."""

    # Recorded queries.

    @abstractmethod
    async def save_query(self, query: Query, *, most: int) -> None:
        """Record a query without waiting for other writers; beyond `most`, 1 or more, the oldest are forgotten.

        May raise `StoreRemoved` if the store is no longer there.
        """

    @abstractmethod
    async def query(self, query_id: str) -> Query | None:
        """A recorded query, or None."""

    # The store as a whole.

    @abstractmethod
    async def copy_facts_from(self, other: "Ledger") -> None:
        """Take over the recorded queries of another ledger, and whether it is parted. For an empty ledger."""

    @abstractmethod
    async def copy_document_from(self, other: "Ledger", document_id: str) -> None:
        """Take over a current document of another ledger, with what models said of it.

        Its vectors and its share of the graph stay behind.
        """

    @abstractmethod
    async def replace_by(self, other: "Ledger") -> None:
        """Take over another store, graph and vectors included, for every process that reads this one."""

    @abstractmethod
    async def status(self, model: str) -> KnowledgeStatus:
        """How much is stored, all of one moment. `model` is the embedding model that is in use."""

    @abstractmethod
    async def state(self) -> str:
        """A token that changes whenever content changes, whoever writes it."""

    @abstractmethod
    async def generation(self) -> str:
        """A token that changes when the whole content was replaced."""

    async def since(self, state: str) -> "Since | None":
        """What the store is now; None if it is as it was at that `state`."""
        if (now := await self.state()) == state:
            return None
        return Since(now, await self.embedding_model(), await self.generation())

    async def opened_with(self) -> tuple[str | None, str]:
        """The embedding model and the generation, as they are when the ledger is opened."""
        return await self.embedding_model(), await self.generation()

    @abstractmethod
    async def flush(self) -> None:
        """Have everything on the disk that was written, so that not even a power cut takes it."""

    @abstractmethod
    async def damage(self, *, whole: bool = False) -> str:
        """What is damaged, "" for nothing. With `whole` everything is read now, however long it takes."""

    @abstractmethod
    def tidy(self) -> None:
        """Free unused disk space soon."""

    @abstractmethod
    async def is_untidy(self) -> bool:
        """Whether something was removed whose disk is not given back yet, even if a process was killed meanwhile."""

    @property
    @abstractmethod
    def is_tidying(self) -> bool:
        """Whether tidying is asked for or under way."""

    @property
    @abstractmethod
    def place(self) -> str:
        """Where the ledger is, for an operator."""

    @property
    def storages(self) -> Mapping[str, str]:
        """LightRAG's classes that the store was made for, by their roles; empty where there is no choice."""
        return {}

    @property
    @abstractmethod
    def read_only(self) -> bool:
        """Whether nothing can be written."""

    @abstractmethod
    async def close(self) -> None:
        """End what is under way. `release` follows when nobody reads any more."""

    @abstractmethod
    def release(self) -> None:
        """Give the connection back."""
