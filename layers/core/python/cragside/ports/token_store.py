"""The tokens that were issued, by their hashes."""

from collections.abc import Sequence
from typing import Protocol

from cragside.domain.tokens import IssuedToken


class TokenStore(Protocol):
    """Keeps issued tokens where every process of the service sees them."""

    def tokens(self) -> Sequence[IssuedToken]:
        """The tokens for a request; the same object while nothing has changed.

        Raises `ConfigurationError` when the store cannot be used from the start, later `ServiceUnavailable`.
        """

    def all(self) -> Sequence[IssuedToken]:
        """The tokens as they are stored now, expired ones included. Raises `ConfigurationError`."""

    def create(self, token: IssuedToken) -> tuple[str, IssuedToken]:
        """Add a token: its secret, which is not stored, and the entry with its new id. Raises `ValidationError`."""

    def revoke(self, name: str) -> IssuedToken:
        """Remove a token by its id or name. Raises `NotFound`."""
