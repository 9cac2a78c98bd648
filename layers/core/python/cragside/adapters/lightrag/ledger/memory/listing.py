"""Documents in memory as a list chooses and sorts them, without the cost of their records."""

from collections.abc import Callable
from dataclasses import dataclass

from cragside.adapters.lightrag.ledger.memory.tables import Version
from cragside.domain.indexing import DocumentRecord, DocumentStatus


@dataclass(frozen=True, slots=True)
class ListedVersion:
    """A version of a document. `record` makes its record, which is needed for its status alone."""

    version: Version
    source: str
    record: Callable[[Version], DocumentRecord]

    @property
    def name(self) -> str:
        """The document's name."""
        return self.version.source.name

    @property
    def title(self) -> str:
        """Its title."""
        return self.version.source.title

    @property
    def file_type(self) -> str:
        """The type of its file."""
        return self.version.source.file_type

    @property
    def unread(self) -> str:
        """The part of its file that was not read, with the reason."""
        return str(self.version.source.tier1.get("unread", ""))

    @property
    def created_at(self) -> str:
        """When it was added."""
        return self.version.created_at

    @property
    def updated_at(self) -> str:
        """When it changed last."""
        return self.version.updated_at

    @property
    def passages(self) -> int:
        """The number of its passages."""
        return max((part.last + 1 for part in self.version.parts.values()), default=0)

    @property
    def status(self) -> DocumentStatus:
        """Its state."""
        return self.record(self.version).status
