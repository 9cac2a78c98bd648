"""A value that is kept in AWS Secrets Manager."""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from cragside.adapters.aws.client import make_client
from cragside.domain.errors import ConfigurationError, ServiceUnavailable

# A value that was exchanged is taken up within this time.
_FRESH_SECONDS = 300.0
# So long after the last successful read a value is trusted; then nobody is let in by it until it is read again.
_TRUSTED_SECONDS = 900.0
_TRIES_AFTER_SECONDS = 5.0
_log = logging.getLogger("cragside")


class Secret:
    """The text of one secret, by ARN or name; neither is part of any message that a client may see.

    It is read at the first call of `value`, not before, and again after five minutes. While it cannot be read anew the
    old value is trusted until 15 minutes after it was read. The clock is the wall's, which alone counts on while a
    machine sleeps or a function is frozen.
    """

    def __init__(
        self,
        name: str,
        *,
        connect: "Callable[[], Any] | None" = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._name = name
        self._connect = connect or _secrets_manager
        self._clock = clock
        self._client: Any = None
        self._text: str | None = None
        self._read_at = 0.0
        self._renews_at: float | None = None
        self._kept_fresh = False
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Secret({self._name!r})"

    def value(self) -> str:
        """The text, without surrounding blanks. Raises `ServiceUnavailable("secrets", ...)` while none can be trusted.

        Waits for a read that is due, unless `keep_fresh` runs.
        """
        if not self._kept_fresh:
            self._renew()
        text, read_at = self._text, self._read_at
        if text is None or not 0 <= self._clock() - read_at <= _TRUSTED_SECONDS:
            raise ServiceUnavailable("secrets", "The token could not be read; the log has the reason.")
        return text

    @asynccontextmanager
    async def keep_fresh(self, every: float = _TRIES_AFTER_SECONDS) -> AsyncIterator[None]:
        """Read the secret in the background meanwhile, as soon as it is due: no call of `value` waits for it.

        Raises `ServiceUnavailable` when there is no value to begin with.
        """
        await asyncio.to_thread(self.value)
        self._kept_fresh = True
        task = asyncio.create_task(self._keep_fresh(every))
        try:
            yield
        finally:
            self._kept_fresh = False
            task.cancel()

    def forget(self) -> None:
        """Drop the text and the client; the next call reads anew."""
        self._client, self._text, self._renews_at = None, None, None

    async def _keep_fresh(self, every: float) -> None:
        while True:
            await asyncio.sleep(every)
            try:
                await asyncio.to_thread(self._renew)
            except Exception as error:  # whatever it is, the next try may be better
                _log.error("The secret %s could not be read: %s", self._name, type(error).__name__)

    def _renew(self) -> None:
        with self._lock:
            now = self._clock()
            # A clock that was set back says nothing about the age of what was read.
            if self._renews_at is not None and self._renews_at - _FRESH_SECONDS <= now < self._renews_at:
                return
            try:
                self._text = self._read()
                # The time before the question: what was exchanged meanwhile may be missing from the answer.
                self._read_at = now
                self._renews_at = now + _FRESH_SECONDS
            except ConfigurationError:
                raise
            except Exception as error:  # the SDK has no common base for what may go wrong
                # A secret that is out of reach is not asked for by every request.
                self._renews_at = self._clock() + _TRIES_AFTER_SECONDS
                _log.error("The secret %s could not be read: %s", self._name, _reason(error))

    def _read(self) -> str:
        self._client = self._client or self._connect()
        text = self._client.get_secret_value(SecretId=self._name).get("SecretString")
        if not isinstance(text, str) or not text.strip():
            raise ValueError("it holds no text")
        return text.strip()


def _reason(error: Exception) -> str:
    """The SDK's error code, such as AccessDeniedException, else the kind of error: messages may quote anything."""
    response = getattr(error, "response", None)
    code = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
    return str(code or (error if type(error) is ValueError else type(error).__name__))


def _secrets_manager() -> Any:
    """A client that gives up within seconds, because a request waits for it."""
    return make_client("secretsmanager", "RAG_API_TOKEN_SECRET", connect_seconds=2, read_seconds=3, attempts=2)
