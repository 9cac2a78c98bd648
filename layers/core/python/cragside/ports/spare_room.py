"""Keeps room on the disk for deletions."""

from typing import Protocol


class SpareRoom(Protocol):
    """Room on the disk of RAG_HOME that nothing but a deletion uses: SQLite writes a log even to delete."""

    def check(self) -> None:
        """Set the room aside again, in a new file, if a deletion has used it.

        Raise `ServiceUnavailable("knowledge_base", ...)` if the disk has no room for it, or for a new document.
        """
        ...

    def give(self) -> bool:
        """Give the room to a deletion that failed. False if the disk is not full, or the room is given already."""
        ...
