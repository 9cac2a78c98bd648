"""Tokens of the API in a file."""

import hashlib
import json
import logging
import os
import re
import secrets
import stat
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Annotated, Literal

from filelock import FileLock, Timeout
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from cragside.databases.private_files import FILE_MODE, replace_file
from cragside.domain.errors import ConfigurationError, NotFound, ServiceUnavailable, ValidationError
from cragside.domain.tokens import TOKEN_PREFIX, IssuedToken, Limits, TokenScope, in_order
from cragside.ports.clock import SYSTEM_CLOCK, Clock

_Most = Annotated[int | None, Field(ge=0)]


class LimitsBody(BaseModel):
    """The most that may be stored; null is no limit."""

    model_config = ConfigDict(extra="forbid")

    workspaces: _Most = None
    documents: _Most = None
    bytes: _Most = None


class TokenEntry(BaseModel):
    """A token. `workspaces` null means all, `expires` null never."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    id: Annotated[str, Field(min_length=1, max_length=100)]
    name: Annotated[str, Field(min_length=1, max_length=100)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    scopes: list[TokenScope]
    workspaces: list[str] | None
    expires: AwareDatetime | None
    created: AwareDatetime
    limits: LimitsBody = LimitsBody()


class TokensBody(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    version: Literal[1]
    tokens: list[TokenEntry]


def token_of(entry: TokenEntry) -> IssuedToken:
    """Return the token of an entry."""
    return IssuedToken(
        id=entry.id,
        name=entry.name,
        digest=bytes.fromhex(entry.sha256),
        scopes=frozenset(entry.scopes),
        workspaces=None if entry.workspaces is None else tuple(entry.workspaces),
        created=entry.created,
        expires=entry.expires,
        limits=Limits(**entry.limits.model_dump()),
    )


def entry_of(token: IssuedToken) -> TokenEntry:
    """Return the entry of a token."""
    limits = token.limits
    return TokenEntry(
        id=token.id,
        name=token.name,
        sha256=token.digest.hex(),
        scopes=in_order(token.scopes),
        workspaces=None if token.workspaces is None else list(token.workspaces),
        expires=None if token.expires is None else token.expires.astimezone(UTC),
        created=token.created.astimezone(UTC),
        limits=LimitsBody(workspaces=limits.workspaces, documents=limits.documents, bytes=limits.bytes),
    )


# Every process notices a change within this time (seconds).
_LOOKS_EVERY = 1.0
# While the file is unusable, such as a half-written copy, the last good state holds for this time (seconds).
_TRUSTED = 60.0
_MOST_BYTES = 10_000_000
_WAIT_SECONDS = 5.0
_BITS = 256
_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,100}")
_log = logging.getLogger("cragside")

_Stamp = tuple[int, int, int, int]


class TokenFile:
    """Stores issued tokens in a file. Every process of the service reads it again within two seconds after a change.

    If the file becomes unusable, the last good state holds for a minute. A file that is removed holds no tokens.
    """

    def __init__(self, path: Path, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._path = path
        self._clock = clock
        self._tokens: Sequence[IssuedToken] = ()
        self._stamp: _Stamp | None = None
        self._looked: float | None = None
        self._good: float | None = None
        self._complaint = ""

    def tokens(self) -> Sequence[IssuedToken]:
        """Return the tokens for a request. The object stays the same until something changes.

        Raises `ConfigurationError` if the file was never usable, and `ServiceUnavailable` if it no longer is.
        """
        now = self._clock.monotonic()
        if self._looked is None:
            self._tokens = self._load()
            self._looked = self._good = now
        elif now - self._looked >= _LOOKS_EVERY:
            self._looked = now
            self._look(now)
        if self._good is None or now - self._good > _TRUSTED:
            raise ServiceUnavailable("tokens", "The tokens cannot be read; the log has the reason.")
        return self._tokens

    def create(self, token: IssuedToken) -> tuple[str, IssuedToken]:
        """Add a token. Return its secret, which is not stored, and its entry. Raises `ValidationError`."""
        _check_name(token.name)
        secret = f"{TOKEN_PREFIX}{secrets.token_urlsafe(_BITS // 8)}"
        made = replace(token, id=f"tok_{secrets.token_hex(6)}", digest=hashlib.sha256(secret.encode()).digest())
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)

        def added(tokens: Sequence[IssuedToken]) -> list[IssuedToken]:
            if any(token.name in (each.name, each.id) for each in tokens):
                raise ValidationError(
                    f"There is a token {token.name} already. Choose another name, or revoke it first."
                )
            return [*tokens, made]

        self._change(added, missing=())
        return secret, made

    def revoke(self, name: str) -> IssuedToken:
        """Remove a token by its id or name. Raises `NotFound`."""
        gone: list[IssuedToken] = []

        def without(tokens: Sequence[IssuedToken]) -> list[IssuedToken]:
            gone.extend(each for each in tokens if name in (each.id, each.name))
            if not gone:
                raise NotFound("There is no token with that id or name. See cragside token list.")
            return [each for each in tokens if each not in gone]

        self._change(without)
        return gone[0]

    def all(self) -> Sequence[IssuedToken]:
        """Return the tokens in the file, including expired ones. Raises `ConfigurationError`."""
        return self._load()

    def _look(self, now: float) -> None:
        try:
            if self._stamp_of(self._path.stat()) != self._stamp:
                self._tokens = self._load()
            self._good, self._complaint = now, ""
        except ConfigurationError as error:
            if not self._path.exists():
                self._tokens, self._stamp, self._good = (), None, now
            self._complain(error.message)
        except FileNotFoundError:
            self._tokens, self._stamp, self._good = (), None, now
            self._complain(f"{self._path} is gone: no token of it is valid any more")
        except OSError as error:
            self._complain(f"{self._path} cannot be read: {error.strerror or type(error).__name__}")

    def _complain(self, complaint: str) -> None:
        if complaint != self._complaint:
            self._complaint = complaint
            _log.error("%s", complaint)

    def _stamp_of(self, status: os.stat_result) -> _Stamp:
        return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino

    def _load(self) -> Sequence[IssuedToken]:
        try:
            with open(self._path, "rb", opener=_opened_without_waiting) as file:
                status = os.fstat(file.fileno())
                self._check(status)
                content = file.read(_MOST_BYTES + 1)
            tokens = _parsed(content)
        except FileNotFoundError as error:
            raise _unusable(
                f"{self._path}, which RAG_TOKENS_FILE names, does not exist. Make it: cragside token new NAME."
            ) from error
        except OSError as error:
            raise _unusable(f"{self._path} cannot be read: {error.strerror or type(error).__name__}.") from error
        except (ValueError, RecursionError):  # its message may quote secrets
            raise _unusable(
                f"{self._path} is not a file of tokens, or it is damaged. Restore it from a backup, or move it away "
                "and make new tokens: cragside token new NAME."
            ) from None
        self._stamp = self._stamp_of(status)
        return tokens

    def _check(self, status: os.stat_result) -> None:
        """Refuse a file that others can write, as they could add tokens of their own."""
        if os.name == "nt":
            return
        if not stat.S_ISREG(status.st_mode):
            raise _unusable(f"{self._path} is not a file. Name a regular file in RAG_TOKENS_FILE.")
        if status.st_uid not in (os.geteuid(), 0):
            raise _unusable(f"{self._path} belongs to another user. Run: chown {os.geteuid()} {self._path}")
        if status.st_mode & 0o022:
            raise _unusable(f"{self._path} may be written by others. Run: chmod 600 {self._path}")
        if status.st_mode & 0o044 and self._stamp is None:
            _log.warning("%s may be read by others. Run: chmod 600 %s", self._path, self._path)

    def _change(
        self,
        change: Callable[[Sequence[IssuedToken]], list[IssuedToken]],
        missing: Sequence[IssuedToken] | None = None,
    ) -> None:
        try:
            with FileLock(f"{self._path}.lock", timeout=_WAIT_SECONDS, mode=FILE_MODE):
                known = missing if missing is not None and not self._path.exists() else self._load()
                body = TokensBody(version=1, tokens=[entry_of(each) for each in change(known)])
                # A link stays one: its target is replaced.
                replace_file(self._path.resolve(), body.model_dump_json(indent=2))
        except (OSError, Timeout) as error:
            reason = getattr(error, "strerror", None) or "another process holds it"
            raise ServiceUnavailable("tokens", f"{self._path} cannot be written: {reason}.") from error


def _opened_without_waiting(path: str, flags: int) -> int:
    """Open a file without waiting, even a FIFO, which `TokenFile` then refuses."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))


def _parsed(content: bytes) -> Sequence[IssuedToken]:
    if len(content) > _MOST_BYTES:
        raise ValueError("too large")
    tokens = tuple(token_of(entry) for entry in TokensBody.model_validate(json.loads(content)).tokens)
    if len({each.id for each in tokens} | {each.digest for each in tokens}) < 2 * len(tokens):
        raise ValueError("a token occurs twice")
    return tokens


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or name != name.strip():
        raise ValidationError("A token's name has 1 to 100 printable characters.", field="name")
    if name.startswith(TOKEN_PREFIX):
        raise ValidationError("A token must not be its own name, which lists and logs show.", field="name")


def _unusable(message: str) -> ConfigurationError:
    return ConfigurationError(message, variable="RAG_TOKENS_FILE")
