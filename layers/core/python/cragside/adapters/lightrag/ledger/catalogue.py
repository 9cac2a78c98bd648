"""What a ledger tells of its documents, their parts and their passages."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

from cragside.adapters.lightrag.ledger.entries import StoredPart
from cragside.domain.document import SourceText
from cragside.domain.indexing import (
    LATEST,
    DocumentRecord,
    DocumentStatus,
    EnrichmentStatus,
    Listing,
    Passage,
    Progress,
    Task,
)


class Catalogue(ABC):
    """Reads a ledger. Every method may raise `LedgerError`."""

    @abstractmethod
    async def record(self, document_id: str) -> DocumentRecord | None:
        """The current document of an `id`."""

    @abstractmethod
    async def sourced(self, source: str) -> DocumentRecord | None:
        """The current document of a source."""

    @abstractmethod
    async def named(self, name: str) -> list[DocumentRecord]:
        """The current documents of a name, latest first."""

    @abstractmethod
    async def below(self, folder: str) -> list[DocumentRecord]:
        """The current documents whose sources lie below a folder, in the order of their sources."""

    @abstractmethod
    async def twins(self, content_hash: str) -> list[DocumentRecord]:
        """The current documents with this content."""

    @abstractmethod
    async def has_source(self, source: str) -> bool:
        """Whether a current document has this source."""

    @abstractmethod
    async def names(self) -> dict[str, str]:
        """The names of all current documents by their ids, in the order of the names."""

    @abstractmethod
    async def labels(self, ids: Collection[str]) -> dict[str, str]:
        """What the current documents of these ids are called where they are listed."""

    @abstractmethod
    async def page(
        self, limit: int, offset: int, status: DocumentStatus | None, track: str | None, listing: Listing = LATEST
    ) -> tuple[list[DocumentRecord], int]:
        """Current documents in the order of the list, and how many there are."""

    @abstractmethod
    async def file_types(self) -> dict[str, int]:
        """How many current documents there are of each type of file, in the order of the types."""

    @abstractmethod
    async def languages(self) -> dict[str | None, int]:
        """How many passages of current documents there are of each language; see `domain.languages`."""

    @abstractmethod
    async def source(self, document_id: str) -> SourceText | None:
        """The whole text of a current document."""

    @abstractmethod
    async def passages(self, document_id: str, part: int | None) -> list[Passage]:
        """The passages of a current document in their order."""

    @abstractmethod
    async def passages_by_id(self, ids: Sequence[str]) -> dict[str, tuple[DocumentRecord, Passage]]:
        """Passages of any version with their documents."""

    @abstractmethod
    async def counts(self) -> dict[EnrichmentStatus, int]:
        """How many passages of current documents are in each state of enrichment."""

    @abstractmethod
    async def progress(self) -> Progress:
        """How far current documents have come."""

    @abstractmethod
    async def tasks(self, document_id: str | None = None) -> list[Task]:
        """What is still to be done of current documents, embedding first."""

    @abstractmethod
    async def sweeps(self, document_id: str | None = None) -> list[Task]:
        """Tasks that remove deleted versions from the graph."""

    @abstractmethod
    async def given_up(self) -> set[tuple[str, int]]:
        """The ids of current documents, and the numbers of their parts, that failed."""

    @abstractmethod
    async def part(self, task: Task) -> StoredPart | None:
        """The part of a task, None when its version is not the current one."""

    @abstractmethod
    async def chunk_ids(self, part: StoredPart) -> list[str]:
        """The ids of a part's passages in their order."""

    @abstractmethod
    async def being_enriched(self) -> list[Task]:
        """Tasks of the parts that are marked as being enriched."""

    @abstractmethod
    async def gone(self) -> list[StoredPart]:
        """The parts of all versions that are to be removed."""

    @abstractmethod
    async def mentions(self, names: Sequence[str]) -> dict[str, int]:
        """How many passages mention each of these entities; those that none mentions are left out."""

    @abstractmethod
    async def mentioned_by(self, passage_ids: Sequence[str]) -> list[tuple[str, str]]:
        """The entities that passages mention: pairs of a passage's id and a name."""

    @abstractmethod
    async def fading(self, kind: str, names: Sequence[str]) -> dict[str, bool]:
        """Those of these entities or relations that a removed passage named, until the graph is rid of it.

        The value says whether a passage that is still there names it too.
        """

    @abstractmethod
    async def passages_naming(self, kind: str, name: str, limit: int) -> tuple[list[str], int]:
        """Ids of the passages that name an entity or a relation, the earliest documents first, and how many there are.

        Those of removed documents do not count.
        """

    @abstractmethod
    async def mentioning(self, name: str, limit: int) -> list[tuple[str, str, str]]:
        """Ids, names and times of acceptance of the documents that mention an entity, earliest first, then by name."""
