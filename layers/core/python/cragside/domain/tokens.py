"""Access tokens: their scopes, workspaces, expiry and storage limits."""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

TokenScope = Literal["read", "write", "chat", "models"]
SCOPES: tuple[TokenScope, ...] = get_args(TokenScope)
ALL_SCOPES: frozenset[TokenScope] = frozenset(SCOPES)
# The scopes of a token that names none. Changing the models of the host must be granted explicitly.
USUAL_SCOPES: frozenset[TokenScope] = ALL_SCOPES - {"models"}
# Secret scanners recognise a published token by this prefix.
TOKEN_PREFIX = "crag_"  # noqa: S105 (no password)


@dataclass(frozen=True, slots=True)
class Limits:
    """The most workspaces, and the most documents and bytes in all of them together."""

    workspaces: int | None = None
    documents: int | None = None
    bytes: int | None = None

    def __bool__(self) -> bool:
        return (self.workspaces, self.documents, self.bytes) != (None, None, None)

    @property
    def width(self) -> tuple[float, ...]:
        """The more room limits leave, the greater this is. Documents count first, then bytes, then workspaces."""
        return tuple(math.inf if most is None else most for most in (self.documents, self.bytes, self.workspaces))

    def filled(self, defaults: "Limits") -> "Limits":
        """Return these limits, with the defaults for those that are not set."""
        return self if self else defaults


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A stored token; `digest` is its SHA-256. `workspaces` None means all, `expires` None means never."""

    id: str
    name: str
    digest: bytes = field(repr=False)
    scopes: frozenset[TokenScope]
    workspaces: tuple[str, ...] | None
    created: datetime
    expires: datetime | None = None
    limits: Limits = NO_LIMITS

    def expired(self, now: datetime) -> bool:
        """Tell if the token is expired."""
        return self.expires is not None and self.expires <= now


def new_token(
    name: str,
    *,
    scopes: frozenset[TokenScope],
    workspaces: tuple[str, ...] | None,
    created: datetime,
    expires: datetime | None = None,
    limits: Limits = NO_LIMITS,
) -> IssuedToken:
    """Return a token without id and hash; the store adds both."""
    return IssuedToken("", name, b"", scopes, workspaces, created, expires, limits)


def in_order(scopes: Collection[TokenScope]) -> list[TokenScope]:
    """Return the scopes in the order of the documentation."""
    return [scope for scope in SCOPES if scope in scopes]


def listed(names: Iterable[str]) -> str:
    """Join names with commas and "or": `a`, `a or b`, `a, b or c`."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last
