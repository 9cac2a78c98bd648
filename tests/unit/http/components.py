"""A part of the service that is asked whether it answers."""

import asyncio


class Component:
    """Counts how often it is asked, and answers, fails or is silent."""

    def __init__(self, failure: Exception | None = None, *, waits: bool = False) -> None:
        self.failure = failure
        self.waits = waits
        self.asked = 0

    async def answer(self) -> None:
        self.asked += 1
        if self.waits:
            await asyncio.Event().wait()
        if self.failure:
            raise self.failure
