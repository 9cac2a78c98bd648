"""A key that a host takes no longer, and the one that replaces it."""


class ExchangedKey:
    """A key that is exchanged once the host has refused the old one."""

    def __init__(self, old: str = "old", new: str = "new") -> None:
        self._key, self._new = old, new

    async def current(self) -> str:
        return self._key

    async def after_refusal(self, refused: str) -> str | None:
        self._key = self._new
        return None if refused == self._key else self._key
