"""A run whose steps are handed on as they end."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from cragside.entrypoints.stopping import stop

Step = TypeVar("Step")
Result = TypeVar("Result")


async def followed(
    work: Callable[[Callable[[Step], None]], Coroutine[Any, Any, Result]],
) -> AsyncIterator[Step | Result]:
    """Each step when `work` tells it, and the result as the last. Raises what `work` raises.

    The run stops when whoever follows it is cancelled or closes this.
    """
    ended: asyncio.Queue[Step | None] = asyncio.Queue()
    run = asyncio.create_task(work(ended.put_nowait))
    run.add_done_callback(lambda _: ended.put_nowait(None))
    try:
        while (step := await ended.get()) is not None:
            yield step
        yield await run
    finally:
        await stop(run)


async def first_of(items: AsyncIterator[Step]) -> Step:
    """Return the first item, as a coroutine that a task can run."""
    return await anext(items)
