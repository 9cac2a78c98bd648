"""Runs work for a request: follows its steps, and stops it when the client leaves."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

# The event loop holds no task by itself.
_stopping: set["asyncio.Task[Any]"] = set()

Result = TypeVar("Result")
Step = TypeVar("Step")


async def stop(task: "asyncio.Task[Any]") -> None:
    """Cancel a task once, and wait until it has cleaned up.

    The server cancels a request again and again. That ends the wait, but not the task's clean-up.
    """
    _stopping.add(task)
    task.add_done_callback(_stopped)
    task.cancel()
    await asyncio.wait({task})


def _stopped(task: "asyncio.Task[Any]") -> None:
    _stopping.discard(task)
    if not task.cancelled():
        task.exception()  # nobody waits for it any more


class ClientGone(Exception):
    """The client left before the end."""


async def until_gone(receive: Receive) -> None:
    """Wait until the client leaves. The body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def while_connected(receive: Receive, work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of the work. If the client leaves, cancels the work and raises `ClientGone`."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(until_gone(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGone
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task


async def followed(
    work: Callable[[Callable[[Step], None]], Coroutine[Any, Any, Result]],
) -> AsyncIterator[Step | Result]:
    """Yield each step that `work` reports, and its result as the last item. Raises what `work` raises.

    The work stops when the follower is cancelled or closes this.
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
