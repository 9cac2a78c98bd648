"""A secret in AWS Secrets Manager."""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from cragside.adapters.aws.client import make_client
from cragside.domain.errors import ConfigurationError, ServiceUnavailable

# A changed value is noticed within this time.
_FRESH_SECONDS = 300.0
# A value is trusted for this time after it was read. Then no token is accepted until it is read again.
_TRUSTED_SECONDS = 900.0
_TRIES_AFTER_SECONDS = 5.0
_log = logging.getLogger("cragside")


class Secret:
    """The text of a secret, by ARN or name. No message to clients has either.

    The first call of `value` reads it, and later calls read it again after five minutes. If that fails, the old value
    is trusted until 15 minutes after it was read. Only the wall clock continues while a machine sleeps or a function is
    frozen.
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
        """The text without surrounding blanks. Raises `ServiceUnavailable("secrets", ...)` without a trusted value.

        It waits for a read that is due, unless `keep_fresh` runs.
        """
        if not self._kept_fresh:
            self._renew()
        text, read_at = self._text, self._read_at
        if text is None or not 0 <= self._clock() - read_at <= _TRUSTED_SECONDS:
            raise ServiceUnavailable("secrets", "The token could not be read; the log has the reason.")
        return text

    @asynccontextmanager
    async def keep_fresh(self, every: float = _TRIES_AFTER_SECONDS) -> AsyncIterator[None]:
        """Read the secret in the background during the block, so no call of `value` waits for it.

        Raises `ServiceUnavailable` if there is no value at the start.
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
        """Forget the text and the client. The next call reads both again."""
        self._client, self._text, self._renews_at = None, None, None

    async def _keep_fresh(self, every: float) -> None:
        while True:
            await asyncio.sleep(every)
            try:
                await asyncio.to_thread(self._renew)
            except Exception as error:  # whatever failed, the next try may succeed
                _log.error("The secret %s could not be read: %s", self._name, type(error).__name__)

    def _renew(self) -> None:
        with self._lock:
            now = self._clock()
            # After the clock was set back, the age of the text is unknown.
            if self._renews_at is not None and self._renews_at - _FRESH_SECONDS <= now < self._renews_at:
                return
            try:
                self._text = self._read()
                # The time before the read: the answer may miss a change made during it.
                self._read_at = now
                self._renews_at = now + _FRESH_SECONDS
            except ConfigurationError:
                raise
            except Exception as error:  # the SDK's errors have no common base
                # Not every request tries again while the secret cannot be read.
                self._renews_at = self._clock() + _TRIES_AFTER_SECONDS
                _log.error("The secret %s could not be read: %s", self._name, _reason(error))

    def _read(self) -> str:
        self._client = self._client or self._connect()
        text = self._client.get_secret_value(SecretId=self._name).get("SecretString")
        if not isinstance(text, str) or not text.strip():
            raise ValueError("it holds no text")
        return text.strip()


def _reason(error: Exception) -> str:
    """The SDK's error code, such as AccessDeniedException, or the type of error. Messages may quote anything."""
    response = getattr(error, "response", None)
    code = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
    return str(code or (error if type(error) is ValueError else type(error).__name__))


def _secrets_manager() -> Any:
    """A client that gives up within seconds, because a request waits for it."""
    return make_client("secretsmanager", "RAG_API_TOKEN_SECRET", connect_seconds=2, read_seconds=3, attempts=2)
