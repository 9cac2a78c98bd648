"""Issued tokens, by their hashes."""

from collections.abc import Sequence
from typing import Protocol

from cragside.domain.tokens import IssuedToken


class TokenStore(Protocol):
    """Stores issued tokens for all processes of the service."""

    def tokens(self) -> Sequence[IssuedToken]:
        """The tokens for a request. The object stays the same until something changes.

        Raises `ConfigurationError` if the store was never usable, and `ServiceUnavailable` if it no longer is.
        """

    def all(self) -> Sequence[IssuedToken]:
        """The tokens in the store, including expired ones. Raises `ConfigurationError`."""

    def create(self, token: IssuedToken) -> tuple[str, IssuedToken]:
        """Add a token. Return its secret, which is not stored, and its entry. Raises `ValidationError`."""

    def revoke(self, name: str) -> IssuedToken:
        """Remove a token by its id or name. Raises `NotFound`."""
