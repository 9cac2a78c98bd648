"""Chooses the documents of a list, and sorts them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from cragside.domain.indexing import DocumentRecord, DocumentStatus

DocumentSort = Literal["added", "changed", "name", "file_type", "passages", "status"]
# In the order in which a list sorts them: what needs somebody comes first.
STATUSES: tuple[DocumentStatus, ...] = ("failed", "pending", "searchable", "enriched")
_LATEST_FIRST: tuple[DocumentSort, ...] = ("added", "changed")


_KEYS: dict[DocumentSort, Callable[[DocumentRecord], str | int]] = {
    "added": lambda record: record.created_at,
    "changed": lambda record: record.updated_at,
    "name": lambda record: record.name.casefold(),
    "file_type": lambda record: record.file_type,
    "passages": lambda record: record.passages,
    "status": lambda record: STATUSES.index(record.status),
}


@dataclass(frozen=True, slots=True)
class Listing:
    """A choice of documents and their order.

    `search` is a part of the name, the title or the source, in any case; "" lists all. `file_type` is exact.
    `unread` lists only documents that were read in part.
    `descending` None means the usual direction: the latest first, all else in ascending order. Equal documents are in
    the order in which they were accepted, or in the opposite one in a descending list.
    """

    search: str = ""
    file_type: str | None = None
    unread: bool = False
    sort: DocumentSort = "changed"
    descending: bool | None = None

    @property
    def reverse(self) -> bool:
        """Tell if the order is a descending one."""
        return self.sort in _LATEST_FIRST if self.descending is None else self.descending

    def takes(self, record: DocumentRecord) -> bool:
        """Tell if a document is listed."""
        if self.file_type not in (None, record.file_type) or (self.unread and not record.unread):
            return False
        wanted = self.search.casefold()
        return not wanted or any(wanted in text.casefold() for text in (record.name, record.title, record.source))

    def ordered(self, records: Iterable[DocumentRecord]) -> list[DocumentRecord]:
        """Documents that come in the order in which they were accepted, in the order of the list."""
        given = list(records)
        if self.reverse:
            given.reverse()
        return sorted(given, key=_KEYS[self.sort], reverse=self.reverse)


LATEST = Listing()
