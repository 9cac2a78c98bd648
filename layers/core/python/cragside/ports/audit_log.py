"""A lasting record of who did what."""

from collections.abc import Mapping
from typing import Any, Protocol


class AuditLog(Protocol):
    """Takes events, one after the other."""

    def check(self) -> None:
        """Raises `ConfigurationError` when events cannot be written."""

    def write(self, event: Mapping[str, Any]) -> None:
        """Append an event. A failure is logged and stops nobody."""
