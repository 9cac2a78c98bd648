"""The use case: files too large for a request, which clients upload through a bucket."""

import io
import logging
import re
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cragside.application.allowance import StorageLimits
from cragside.domain.errors import CragsideError, NotFound, PayloadTooLarge, ValidationError
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.files import UploadStore

if TYPE_CHECKING:
    from cragside.store.workspaces import Workspaces

UPLOAD_ID = r"^[0-9a-f]{32}$"
_SECONDS = 15 * 60
_log = logging.getLogger("cragside")


@dataclass(frozen=True, slots=True)
class UploadOffer:
    """The form for one file of 1 to `max_bytes` bytes, and the id of the upload."""

    id: str
    url: str
    fields: Mapping[str, str]
    expires_at: datetime
    max_bytes: int


class Uploads:
    """Files of at most `most_bytes` bytes in `store`, by workspace, under ids that nobody can guess."""

    def __init__(
        self,
        workspaces: "Workspaces",
        store: UploadStore | None,
        *,
        most_bytes: int,
        limits: StorageLimits | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._limits = limits or StorageLimits(workspaces, clock=clock)
        self._workspaces = workspaces
        self._store = store
        self._most_bytes = most_bytes
        self._clock = clock

    async def offer(self, workspace: str) -> UploadOffer:
        """Return a form for a file. Raises `Forbidden` if the client has no room for another document.

        Raises `ValidationError` if uploads are not configured, and `ReadOnlyStore` for a baked store.
        """
        store = self._configured()
        await (await self._workspaces.open(workspace)).documents.check_writable()
        await self._limits.check(workspace)
        identifier = secrets.token_hex(16)
        expires_at = self._clock.now() + timedelta(seconds=_SECONDS)
        form = await store.form(f"{workspace}/{identifier}", most_bytes=self._most_bytes, seconds=_SECONDS)
        return UploadOffer(identifier, form.url, form.fields, expires_at, self._most_bytes)

    @asynccontextmanager
    async def opened(self, identifier: str, *, workspace: str) -> AsyncIterator[bytes]:
        """The content of an upload, for a block that accepts it.

        The upload is removed when the block ends or raises `ValidationError`, as the same file would be refused again.
        It stays after any other failure, so that it can be tried again. Raises `NotFound` if the workspace has no such
        upload, and `PayloadTooLarge`.
        """
        store = self._configured()
        if not re.fullmatch(UPLOAD_ID, identifier):
            raise _unknown(identifier)
        name = f"{workspace}/{identifier}"
        await (await self._workspaces.open(workspace)).documents.check_writable()
        await self._limits.check(workspace)
        try:
            yield await self._fetched(store, name, identifier)
        except ValidationError:
            await _remove(store, name)
            raise
        await _remove(store, name)

    async def _fetched(self, store: UploadStore, name: str, identifier: str) -> bytes:
        content = io.BytesIO()
        try:
            await store.fetch(name, content, limit=self._most_bytes)
        except NotFound as error:
            raise _unknown(identifier) from error
        except PayloadTooLarge as error:  # a store may not enforce the form's limit
            message = f"The upload has more than {self._most_bytes} bytes (RAG_MAX_FILE_BYTES)."
            raise PayloadTooLarge(message, limit=self._most_bytes) from error
        return content.getvalue()

    def _configured(self) -> UploadStore:
        if self._store is None:
            raise ValidationError(
                "This service takes no uploads: RAG_UPLOADS names no bucket for them. Send the file in a form to "
                "POST /v1/documents."
            )
        return self._store


async def _remove(store: UploadStore, name: str) -> None:
    """Remove an upload. If that fails, the bucket's lifecycle rules remove it."""
    try:
        await store.remove(name)
    except CragsideError as error:
        _log.warning("An upload could not be removed from %s: %s", store.address, error.message)


def _unknown(identifier: str) -> NotFound:
    return NotFound(
        f"There is no upload {identifier} in this workspace. It was not sent, or it was already accepted or "
        "refused. Ask for another one: POST /v1/documents/uploads."
    )
