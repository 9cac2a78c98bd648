"""Stops a task whose request is over."""

import asyncio
from typing import Any

# The event loop holds no task by itself.
_stopping: set["asyncio.Task[Any]"] = set()


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
