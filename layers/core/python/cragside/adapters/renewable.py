"""An address or a password that a setting has, or that is kept elsewhere and exchanged there."""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


class Unreadable(OSError):
    """What a server is reached with cannot be read. The message has the reason, and no secret."""


@runtime_checkable
class Renewable(Protocol[T]):
    """A value that may be exchanged while the process runs. Its text is for messages and has no secret."""

    async def current(self) -> T:
        """What new connections use. It stays the same object until it is exchanged. Raises `Unreadable`."""
        ...

    async def after_refusal(self, refused: T) -> T | None:
        """The value now, if it is another one than the server has refused. Raises `Unreadable`."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed(Generic[T]):
    """A value that stays."""

    value: T

    async def current(self) -> T:
        """See `Renewable`."""
        return self.value

    async def after_refusal(self, _: T) -> T | None:
        """See `Renewable`."""
        return None

    def __str__(self) -> str:
        return str(self.value)


def renewable(value: "T | Renewable[T]") -> Renewable[T]:
    """The value as one that may be exchanged."""
    return value if isinstance(value, Renewable) else Fixed(value)
