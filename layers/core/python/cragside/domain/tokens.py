"""What a token opens: scopes, workspaces, a time, and how much may be stored with it."""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, get_args

TokenScope = Literal["read", "write", "chat", "models"]
SCOPES: tuple[TokenScope, ...] = get_args(TokenScope)
ALL_SCOPES: frozenset[TokenScope] = frozenset(SCOPES)
# What a token may do that is made without a word on scopes: everything but to change the models of the host.
USUAL_SCOPES: frozenset[TokenScope] = ALL_SCOPES - {"models"}
# Every issued token begins like this, so that scanners for secrets find one that was published by mistake.
TOKEN_PREFIX = "crag_"  # noqa: S105 (no password)


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that may be stored: workspaces, and documents and their bytes in all of the workspaces together."""

    workspaces: int | None = None
    documents: int | None = None
    bytes: int | None = None

    def __bool__(self) -> bool:
        return (self.workspaces, self.documents, self.bytes) != (None, None, None)

    @property
    def width(self) -> tuple[float, ...]:
        """Greater for limits that leave more room: documents count first, then bytes, then workspaces."""
        return tuple(math.inf if most is None else most for most in (self.documents, self.bytes, self.workspaces))

    def filled(self, defaults: "Limits") -> "Limits":
        """These limits, or the defaults when there are none."""
        return self if self else defaults


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token as it is kept: by its SHA-256. `workspaces` None means all, `expires` None means never."""

    id: str
    name: str
    digest: bytes = field(repr=False)
    scopes: frozenset[TokenScope]
    workspaces: tuple[str, ...] | None
    created: datetime
    expires: datetime | None = None
    limits: Limits = NO_LIMITS

    def expired(self, now: datetime) -> bool:
        """Whether its time is over."""
        return self.expires is not None and self.expires <= now


def new_token(
    name: str,
    *,
    scopes: frozenset[TokenScope],
    workspaces: tuple[str, ...] | None,
    expires: datetime | None = None,
    limits: Limits = NO_LIMITS,
) -> IssuedToken:
    """A token without id and hash, which it gets when it is stored."""
    return IssuedToken("", name, b"", scopes, workspaces, datetime.now(UTC), expires, limits)


def in_order(scopes: Collection[TokenScope]) -> list[TokenScope]:
    """The scopes in the order in which the documentation names them."""
    return [scope for scope in SCOPES if scope in scopes]


def listed(names: Iterable[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last
