"""A durable record of who did what."""

from collections.abc import Mapping
from typing import Any, Protocol


class AuditLog(Protocol):
    """Records events in order."""

    def check(self) -> None:
        """Raises `ConfigurationError` if events cannot be written."""

    def write(self, event: Mapping[str, Any]) -> None:
        """Append an event. A failure is logged, and the request continues."""
