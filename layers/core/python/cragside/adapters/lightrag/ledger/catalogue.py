"""What a ledger tells of its documents, their parts and their passages."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

from cragside.adapters.lightrag.ledger.entries import StoredPart
from cragside.domain.document import SourceText
from cragside.domain.indexing import (
    DocumentRecord,
    DocumentStatus,
    EnrichmentStatus,
    Passage,
    Progress,
    Stored,
    Task,
)


class Catalogue(ABC):
    """Reads a ledger. Every method may raise `LedgerError`."""

    @abstractmethod
    def record(self, document_id: str) -> DocumentRecord | None:
        """The current document of an `id`."""

    @abstractmethod
    def sourced(self, source: str) -> DocumentRecord | None:
        """The current document of a source."""

    @abstractmethod
    def named(self, name: str) -> list[DocumentRecord]:
        """The current documents of a name, latest first."""

    @abstractmethod
    def unclaimed(self, name: str) -> DocumentRecord | None:
        """The current document of a name that nobody has given a source."""

    @abstractmethod
    def all_unclaimed(self) -> list[DocumentRecord]:
        """The current documents that nobody has given a source, in the order of their names."""

    @abstractmethod
    def below(self, folder: str) -> list[DocumentRecord]:
        """The current documents whose sources lie below a folder, in the order of their sources."""

    @abstractmethod
    def twins(self, content_hash: str) -> list[DocumentRecord]:
        """The current documents with this content."""

    @abstractmethod
    def has_source(self, source: str) -> bool:
        """Whether a current document has this source."""

    @abstractmethod
    def names(self) -> dict[str, str]:
        """The names of all current documents by their ids, in the order of the names."""

    @abstractmethod
    def labels(self, ids: Collection[str]) -> dict[str, str]:
        """What the current documents of these ids are called where they are listed."""

    @abstractmethod
    def page(
        self, limit: int, offset: int, status: DocumentStatus | None, track: str | None
    ) -> tuple[list[DocumentRecord], int]:
        """Current documents, latest first, and how many there are."""

    @abstractmethod
    def source(self, document_id: str) -> SourceText | None:
        """The whole text of a current document."""

    @abstractmethod
    def passages(self, document_id: str, part: int | None) -> list[Passage]:
        """The passages of a current document in their order."""

    @abstractmethod
    def passages_by_id(self, ids: Sequence[str]) -> dict[str, tuple[DocumentRecord, Passage]]:
        """Passages of any version with their documents."""

    @abstractmethod
    def counts(self) -> dict[EnrichmentStatus, int]:
        """How many passages of current documents are in each state of enrichment."""

    @abstractmethod
    def stored(self) -> Stored:
        """How many current documents there are, and the bytes of all texts, replaced ones included until they go."""

    @abstractmethod
    def progress(self) -> Progress:
        """How far current documents have come."""

    @abstractmethod
    def tasks(self, document_id: str | None = None) -> list[Task]:
        """What is still to be done of current documents, embedding first."""

    @abstractmethod
    def sweeps(self, document_id: str | None = None) -> list[Task]:
        """Void tasks of versions that are gone: whoever gets one takes them out of the graph."""

    @abstractmethod
    def given_up(self) -> set[tuple[str, int]]:
        """The ids of current documents, and the numbers of their parts, that failed."""

    @abstractmethod
    def part(self, task: Task) -> StoredPart | None:
        """The part of a task, None when its version is not the current one."""

    @abstractmethod
    def chunk_ids(self, part: StoredPart) -> list[str]:
        """The ids of a part's passages in their order."""

    @abstractmethod
    def gone(self) -> list[StoredPart]:
        """The parts of all versions that are to be removed."""

    @abstractmethod
    def uncut(self) -> list[str]:
        """The ids of current documents that have no parts yet."""
