"""From the bytes of a file to its text."""

from typing import Protocol

from cragside.domain.document import SourceText


class DocumentLoader(Protocol):
    """Reads files of many types. Files are untrusted: time and memory are bounded whatever is in them."""

    async def load(
        self, content: bytes, *, name: str, content_type: str | None = None, workspace: str = ""
    ) -> SourceText:
        """The text of a file, with pages, sections, title, document type and tier 1.

        The type follows `content_type` where it is a telling one, else the name's ending. Raises `PayloadTooLarge` with
        the limit, and `ValidationError` with the reason for unsupported, damaged, encrypted, hostile or empty files.
        Workspaces take turns; `ServiceUnavailable` is raised when the file's turn does not come in time.
        """
