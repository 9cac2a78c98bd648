"""A container whose members are built at first use, can be replaced by keyword, and are closed with it."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import cached_property
from typing import Any, TypeVar

from cragside.settings import Settings

Step = Callable[[], Awaitable[object]]
Member = TypeVar("Member")


class Members:
    """Each `cached_property` of a subclass is a member. A keyword replaces the member of that name.

    mypy checks no replacement against its member: a signature would list every member a second time.

    The container closes the members that it built. The caller closes replacements.
    """

    def __init__(self, settings: Settings, **replacements: Any) -> None:
        if unknown := sorted(replacements.keys() - set(self.names())):
            raise TypeError(f"{type(self).__name__} has no member {', '.join(unknown)}.")
        self.settings = settings
        self._closers: list[Step] = []
        self._disconnectors: list[Step] = []
        vars(self).update(replacements)

    @classmethod
    def names(cls) -> list[str]:
        """The members' names."""
        classes = reversed(cls.__mro__)
        return [name for each in classes for name, value in vars(each).items() if isinstance(value, cached_property)]

    def build(self) -> None:
        """Build every member."""
        for name in self.names():
            getattr(self, name)

    async def disconnect(self) -> None:
        """Close the connections to other hosts; the next use opens them again."""
        for step in self._disconnectors:
            await step()

    async def close(self) -> None:
        """Close every member that was built, the latest first, on the loop that used it.

        A member that fails to close does not keep the others open.
        """
        async with AsyncExitStack() as stack:
            while self._closers:
                stack.push_async_callback(self._closers.pop(0))

    def _closed(self, member: Member, close: Step) -> Member:
        """Have `close` called when the container closes."""
        self._closers.append(close)
        return member

    def _connected(self, member: Member, close: Step) -> Member:
        """Have `close` called when the container disconnects, and when it closes."""
        self._disconnectors.append(close)
        return self._closed(member, close)
