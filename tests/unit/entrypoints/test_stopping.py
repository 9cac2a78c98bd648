"""A run whose request is over cleans up, whatever else is cancelled meanwhile."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from cragside.entrypoints.runs import followed


async def test_a_run_cleans_up_although_its_request_is_cancelled_again() -> None:
    begun, cleaned = asyncio.Event(), asyncio.Event()

    async def work(tell: Callable[[str], None]) -> None:
        tell("one")
        try:
            await asyncio.sleep(60)
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            cleaned.set()

    async def follow() -> None:
        async with aclosing(followed(work)) as steps:  # type: ignore[type-var]  # it is a generator
            async for _ in steps:
                begun.set()

    following = asyncio.create_task(follow())
    await begun.wait()
    for _ in range(3):
        following.cancel()
        await asyncio.sleep(0)
    await asyncio.wait({following})
    async with asyncio.timeout(60):
        assert await cleaned.wait()
