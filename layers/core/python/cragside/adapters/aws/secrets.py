"""Secrets that AWS keeps, what they mean, and passwords that are made from AWS' credentials."""

import asyncio
import logging
import re
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Generic, TypeVar

from cragside.adapters.aws.client import AwsClient, make_client
from cragside.databases.renewable import Unreadable
from cragside.databases.server_addresses import BadAddress
from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.ports.clock import SYSTEM_CLOCK, Clock

# What was read is trusted for so long: what cragside itself compares with, and what a server checks anyway.
TRUSTED_SECONDS = 900.0
TRUSTED_BY_SERVERS_SECONDS = 3600.0
# A changed value is noticed within this time.
_FRESH_SECONDS = 300.0
_TRIES_AFTER_SECONDS = 5.0
# A connection waits this long for a value that is due, while there is a trusted one.
_PATIENCE_SECONDS = 1.0
_log = logging.getLogger("cragside")

T = TypeVar("T")


class UnfitSecret(ValueError):
    """A secret's text cannot be used. The message goes to the log and quotes nothing of it."""


class Secrets:
    """Reads secrets of Secrets Manager, and parameters of Systems Manager, which cost nothing, by their ARNs.

    All of a service share a client, which is made at the first read: that takes most of a second.
    """

    def __init__(self, connect: "Callable[[str], Any] | None" = None, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._connect = connect or _client
        self._clock = clock
        self._clients: dict[str, Any] = {}
        self._making = threading.Lock()
        self._secrets: list[Secret[Any]] = []

    @property
    def unreadable(self) -> bool:
        """Tell if the last attempt to read one of them failed."""
        return any(secret.unreadable for secret in self._secrets)

    def secret(
        self, name: str, *, setting: str, parse: Callable[[str], T], trusted_seconds: float = TRUSTED_SECONDS
    ) -> "Secret[T]":
        """Return a secret. `parse` raises `UnfitSecret` or `BadAddress` for a text that cannot be used."""
        secret = Secret(name, setting, parse, self.text, trusted_seconds=trusted_seconds, clock=self._clock)
        self._secrets.append(secret)
        return secret

    def text(self, name: str) -> str:
        """The text without surrounding blanks. Raises `UnfitSecret`, `ConfigurationError` and what the SDK raises."""
        if name.startswith("arn:") and name.split(":")[2] == "ssm":
            text = self._connected("ssm").get_parameter(Name=name, WithDecryption=True)["Parameter"]["Value"]
        else:
            text = self._connected("secretsmanager").get_secret_value(SecretId=name).get("SecretString")
        if not isinstance(text, str) or not text.strip():
            raise UnfitSecret("it holds no text")
        return text.strip()

    def _connected(self, service: str) -> Any:
        with self._making:
            if service not in self._clients:
                self._clients[service] = self._connect(service)
            return self._clients[service]

    def forget(self) -> None:
        """Forget all texts, and the clients with connections and credentials. The next use reads them again."""
        self._clients.clear()
        for secret in self._secrets:
            secret.forget()


class Secret(Generic[T]):
    """Keeps the value that the text of a secret stands for. No message to clients has its ARN, name or text.

    The first use reads it, and later uses read it again after five minutes. If that fails, the old value is trusted for
    `trusted_seconds` after it was read. Only the wall clock continues while a machine sleeps or a function is frozen.
    """

    def __init__(
        self,
        name: str,
        setting: str,
        parse: Callable[[str], T],
        read: Callable[[str], str],
        *,
        trusted_seconds: float,
        clock: Clock,
    ) -> None:
        self._name = name
        self._setting = setting
        self._parse = parse
        self._read = read
        self._trusted_seconds = trusted_seconds
        self._clock = clock
        self._text: str | None = None
        self._value: T | None = None
        self._read_at = 0.0
        self._renews_at: float | None = None
        self._refused_at: float | None = None
        self._kept_fresh = False
        self._lock = threading.Lock()
        self.unreadable = False
        """True if the last attempt to read it failed."""

    def __repr__(self) -> str:
        return f"Secret({self._name!r})"

    def __str__(self) -> str:
        return f"the secret in {self._setting}"

    def value(self) -> T:
        """Return the value. Raises `ServiceUnavailable("secrets", ...)` without a trusted one.

        It waits for a read that is due, unless `keep_fresh` runs.
        """
        if not self._kept_fresh:
            self._renew()
        value = self._trusted()
        if value is None:
            raise ServiceUnavailable("secrets", f"{self._unreadable()}; the log has the reason.")
        return value

    async def current(self) -> T:
        """See `Renewable`. It waits for a read that is due, and at most a second while there is a trusted value."""
        if self._is_due():
            with suppress(TimeoutError):
                async with asyncio.timeout(None if self._trusted() is None else _PATIENCE_SECONDS):
                    await asyncio.to_thread(self._renew)
        value = self._trusted()
        if value is None:
            raise Unreadable(self._unreadable())
        return value

    async def after_refusal(self, refused: T) -> T | None:
        """See `Renewable`. It reads at once, but not more often than every five seconds."""
        await asyncio.to_thread(self._renew_after, refused)
        value = self._trusted()
        return None if value == refused else value

    @asynccontextmanager
    async def keep_fresh(self) -> AsyncIterator[None]:
        """Read the secret in the background during the block, so no call of `value` waits for it.

        Raises `ServiceUnavailable` if there is no value at the start.
        """
        await asyncio.to_thread(self.value)
        self._kept_fresh = True
        task = asyncio.create_task(self._keep_fresh())
        try:
            yield
        finally:
            self._kept_fresh = False
            task.cancel()

    def forget(self) -> None:
        """Forget the text. The next use reads it again."""
        self._text, self._value, self._renews_at, self._refused_at = None, None, None, None

    def _unreadable(self) -> str:
        return f"What {self._setting} names could not be read"

    def _trusted(self) -> T | None:
        return self._value if 0 <= self._clock.time() - self._read_at <= self._trusted_seconds else None

    def _is_due(self) -> bool:
        # After the clock was set back, the age of the text is unknown.
        due = self._renews_at
        return due is None or not due - _FRESH_SECONDS <= self._clock.time() < due

    async def _keep_fresh(self) -> None:
        while True:
            await self._clock.sleep(_TRIES_AFTER_SECONDS)
            try:
                await asyncio.to_thread(self._renew)
            except Exception as error:  # whatever failed, the next try may succeed
                _log.error("The secret %s could not be read: %s", self._name, type(error).__name__)

    def _renew(self) -> None:
        with self._lock:
            if self._is_due():
                self._try_to_read()

    def _renew_after(self, refused: T) -> None:
        with self._lock:
            now, last = self._clock.time(), self._refused_at
            if self._value != refused or (last is not None and 0 <= now - last < _TRIES_AFTER_SECONDS):
                return
            self._refused_at = now
            self._try_to_read()

    def _try_to_read(self) -> None:
        now = self._clock.time()
        try:
            text = self._read(self._name)
            if text != self._text or self._value is None:
                self._text, self._value = text, self._parse(text)
            # The time before the read: the answer may miss a change made during it.
            self._read_at = now
            self._renews_at = now + _FRESH_SECONDS
            self.unreadable = False
        except ConfigurationError:
            raise
        except Exception as error:  # the SDK's errors have no common base
            self.unreadable = True
            # Not every request tries again while the secret cannot be read.
            self._renews_at = self._clock.time() + _TRIES_AFTER_SECONDS
            _log.error("The secret %s of %s could not be read: %s", self._name, self._setting, _reason(error))


def _reason(error: Exception) -> str:
    """Return the SDK's error code, such as AccessDeniedException, or the type of error. Messages may quote anything."""
    if isinstance(error, UnfitSecret | BadAddress):
        return str(error)
    response = getattr(error, "response", None)
    code = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
    return str(code or type(error).__name__)


def _client(service: str) -> Any:
    """Return a client that gives up within seconds, because a request waits for it."""
    subject = "A setting whose name ends in _SECRET"
    return make_client(service, subject, connect_seconds=2, read_seconds=3, attempts=2)


_MOST = 2
# What RFC 6750 lets a bearer token have. Anything else is a list, quotes or JSON rather than a token.
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{1,1024}")


def api_tokens(text: str) -> tuple[str, ...]:
    """Return the token, or two while one is exchanged for the other: a line each. Blank lines are none.

    Raises `UnfitSecret` for what is probably a mistake: no token, more than two, JSON, a list in one line.
    """
    tokens = tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
    if not tokens:
        raise UnfitSecret("it holds no token")
    if text.strip().startswith("{"):
        raise UnfitSecret("it holds JSON; write the token alone, or two tokens on a line each")
    if len(tokens) > _MOST:
        raise UnfitSecret(f"it holds more than {_MOST} tokens")
    if not all(_TOKEN.fullmatch(token) for token in tokens):
        problem = "a token has a character other than letters, digits and -._~+/=, or more than 1,024 of them"
        raise UnfitSecret(f"{problem}; write two tokens on a line each")
    return tokens


_SUBJECT = "auth=iam in POSTGRES_URI"


class DatabaseTokens:
    """Makes a password for each connection. RDS takes it for 15 minutes, and the connection stays open afterwards.

    RDS is not asked: the password is a signature by the credentials. Its region is the client's.
    """

    def __init__(self, host: str, port: int, user: str) -> None:
        self._place = {"DBHostname": host, "Port": port, "DBUsername": user}
        self._rds = AwsClient("rds", _SUBJECT, component="knowledge_base", read_seconds=3)

    async def make(self) -> str:
        """Return a new password. Raises `ServiceUnavailable` and `ConfigurationError`."""
        # Credentials may come from a service of the machine's, which is asked over HTTP.
        return await asyncio.to_thread(self._made)

    def _made(self) -> str:
        with self._rds.connected(_no_refusal) as client:
            return str(client.generate_db_auth_token(**self._place))


def _no_refusal(_: str) -> ServiceUnavailable | None:
    return None
