"""A run of the graph, whose steps are handed on as they end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from cragside.domain.explanation import Explanation
from cragside.domain.steps import Step, Watch


async def followed(explain: Callable[[Watch], Coroutine[Any, Any, Explanation]]) -> AsyncIterator[Step | Explanation]:
    """Each step when it ends, and the explanation as the last. Raises what `explain` raises.

    The run stops when whoever follows it is cancelled or closes this.
    """
    ended: asyncio.Queue[Step | None] = asyncio.Queue()
    run = asyncio.ensure_future(explain(ended.put_nowait))
    run.add_done_callback(lambda _: ended.put_nowait(None))
    try:
        while (step := await ended.get()) is not None:
            yield step
        yield await run
    finally:
        run.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await run
