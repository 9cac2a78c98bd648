"""Issued tokens, and the record of who did what with them."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from cragside.domain.tokens import IssuedToken


class TokenStore(Protocol):
    """Stores issued tokens for all processes of the service."""

    def tokens(self) -> Sequence[IssuedToken]:
        """Return the tokens for a request. The object stays the same until something changes.

        Raises `ConfigurationError` if the store was never usable, and `ServiceUnavailable` if it no longer is.
        """

    def all(self) -> Sequence[IssuedToken]:
        """Return the tokens in the store, including expired ones. Raises `ConfigurationError`."""

    def create(self, token: IssuedToken) -> tuple[str, IssuedToken]:
        """Add a token. Return its secret, which is not stored, and its entry. Raises `ValidationError`."""

    def revoke(self, name: str) -> IssuedToken:
        """Remove a token by its id or name. Raises `NotFound`."""


class AuditLog(Protocol):
    """Records events in order."""

    def check(self) -> None:
        """Raises `ConfigurationError` if events cannot be written."""

    def write(self, event: Mapping[str, Any]) -> None:
        """Append an event. A failure is logged, and the request continues."""
