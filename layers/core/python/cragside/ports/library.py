"""The documents of one workspace, from the moment they are accepted."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from cragside.domain.document import SourceText
from cragside.domain.indexing import (
    Acceptance,
    DocumentRecord,
    DocumentStatus,
    EnrichmentStatus,
    Passage,
    Progress,
    Task,
)
from cragside.domain.listing import LATEST, Listing


class Library(ABC):
    """Stores documents, their progress and their passages. Changes are durable when a call returns.

    Failures of the store raise `ServiceUnavailable("knowledge_base", ...)`.
    """

    @abstractmethod
    async def accept(
        self, source: SourceText, *, enrich: bool = True, track: str = "", rename: bool = False
    ) -> Acceptance:
        """Take a text in and cut it into passages and parts; nothing is embedded yet.

        The same source with another text replaces the document once the new text is searchable. With the same text it
        is `unchanged`, and takes name, title, metadata and track from this call. It has tasks only if it is unfinished
        or its title has changed, because titles are searched. The same text from another source is a separate
        document, whatever its name. So is a text with another track: the track is appended to its name and source.

        With `rename`, a source that already has another text gets a number, and so does the name. Nothing is replaced.
        """

    @abstractmethod
    async def check_writable(self) -> None:
        """Raises `ReadOnlyStore`, as `accept` would, where nothing can be taken in."""

    @abstractmethod
    async def document(self, document_id: str) -> DocumentRecord | None:
        """A document by its id."""

    @abstractmethod
    async def sourced(self, source: str) -> DocumentRecord | None:
        """The document of a source."""

    @abstractmethod
    async def named(self, name: str) -> list[DocumentRecord]:
        """All documents of a name, latest first."""

    @abstractmethod
    async def below(self, folder: str) -> list[DocumentRecord]:
        """All documents whose source lies below a folder, given by its absolute path, in the order of their sources."""

    @abstractmethod
    async def move(self, document_id: str, *, source: str, name: str) -> DocumentRecord:
        """Give a document another source and another name. Its id, text, passages and vectors stay as they are.

        Raises `NotFound` for an unknown document, and `ValidationError` when another document has the source.
        """

    @abstractmethod
    async def documents(
        self,
        *,
        limit: int = 100,
        offset: int = 0,
        status: DocumentStatus | None = None,
        track: str | None = None,
        listing: Listing = LATEST,
    ) -> tuple[list[DocumentRecord], int]:
        """A page of documents, by default the latest first, and how many there are in all."""

    @abstractmethod
    async def file_types(self) -> dict[str, int]:
        """How many documents there are of each type of file, in the order of the types."""

    @abstractmethod
    async def languages(self) -> dict[str | None, int]:
        """How many passages there are of each language; see `domain.languages`."""

    @abstractmethod
    async def source(self, document_id: str) -> SourceText | None:
        """The whole text as it was accepted."""

    @abstractmethod
    async def passages(self, document_id: str, part: int | None = None) -> list[Passage]:
        """A document's passages in their order, or those of one part."""

    @abstractmethod
    async def passages_by_id(self, ids: Sequence[str]) -> dict[str, tuple[DocumentRecord, Passage]]:
        """Passages with their documents; missing ones are left out."""

    @abstractmethod
    async def delete(self, document_id: str) -> bool:
        """Forget a document. False when there is none.

        Its text and its passages are gone at once. What only it contributed to the graph is removed at once, or by a
        task of `restart` while somebody else writes to the graph.
        """

    @abstractmethod
    async def restart(
        self, document_id: str | None = None, *, force: bool = False, failures: bool = True
    ) -> list[Task]:
        """The tasks of unfinished and failed work; with `force` of all work. None means all documents.

        Their parts become pending. Without `failures`, parts that were given up stay so, and the tasks include removing
        from the graph what deleted documents left there.
        """

    @abstractmethod
    async def progress(self) -> Progress:
        """How far all documents have come."""

    @abstractmethod
    async def counts(self) -> dict[EnrichmentStatus, int]:
        """How many passages are in each state of enrichment."""
