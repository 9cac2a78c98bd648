"""Reads the text of files."""

from typing import Protocol

from cragside.domain.document import SourceText


class DocumentLoader(Protocol):
    """Reads files of many types. Files are untrusted, so time and memory are bounded."""

    async def load(
        self, content: bytes, *, name: str, content_type: str | None = None, workspace: str = ""
    ) -> SourceText:
        """The text of a file, with pages, sections, title, document type and tier 1.

        The type follows `content_type` if it is specific, else the ending of the name. Raises `PayloadTooLarge` with
        the limit, and `ValidationError` with the reason for unsupported, damaged, encrypted, hostile or empty files.
        Workspaces take turns; `ServiceUnavailable` is raised if the file's turn does not come in time.
        """
