"""A value that is kept in AWS Secrets Manager."""

import logging
import time
from collections.abc import Callable
from typing import Any

from cragside.domain.errors import ConfigurationError, ServiceUnavailable

# A value that was exchanged is taken up within this time.
_FRESH_SECONDS = 300.0
_TRIES_AFTER_SECONDS = 5.0
_CONNECT_SECONDS, _READ_SECONDS, _ATTEMPTS = 2, 3, 2
_log = logging.getLogger("cragside")


class Secret:
    """The text of one secret, by ARN or name; neither is part of any message that a client may see.

    It is read at the first call of `value`, not before, and again after five minutes. A value that cannot be read anew
    stays in use.
    """

    def __init__(
        self,
        name: str,
        *,
        connect: "Callable[[], Any] | None" = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._connect = connect or _secrets_manager
        self._clock = clock
        self._client: Any = None
        self._text: str | None = None
        self._expires = 0.0

    def __repr__(self) -> str:
        return f"Secret({self._name!r})"

    def value(self) -> str:
        """The text, without surrounding blanks. Raises `ServiceUnavailable("secrets", ...)` while there is none."""
        if self._clock() >= self._expires:
            self._renew()
        if self._text is None:
            raise ServiceUnavailable("secrets", "The token could not be read; the log has the reason.")
        return self._text

    def forget(self) -> None:
        """Drop the text and the client; the next call reads anew."""
        self._client, self._text, self._expires = None, None, 0.0

    def _renew(self) -> None:
        try:
            self._text = self._read()
            self._expires = self._clock() + _FRESH_SECONDS
        except ConfigurationError:
            raise
        except Exception as error:  # the SDK has no common base for what may go wrong
            # A secret that is out of reach is not asked for by every request.
            self._expires = self._clock() + _TRIES_AFTER_SECONDS
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
    """A client that gives up in seconds: a request waits for it."""
    try:
        import boto3
        from botocore.config import Config
    except ImportError as error:
        raise ConfigurationError(
            "RAG_API_TOKEN_SECRET needs boto3. Install cragside with its extra: pip install 'cragside[aws]'.",
            variable="RAG_API_TOKEN_SECRET",
        ) from error
    retries: Any = {"total_max_attempts": _ATTEMPTS, "mode": "standard"}
    config = Config(connect_timeout=_CONNECT_SECONDS, read_timeout=_READ_SECONDS, retries=retries)
    return boto3.client("secretsmanager", config=config)
