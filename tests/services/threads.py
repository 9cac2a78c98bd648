"""Servers of asyncio for tests that run without it."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

T = TypeVar("T")
_SECONDS = 60


@contextmanager
def in_a_thread(opened: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """Yield the value of an asynchronous context, whose loop runs in a thread until the block ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yielded = asyncio.run_coroutine_threadsafe(opened.__aenter__(), loop).result(_SECONDS)
        try:
            yield yielded
        finally:
            asyncio.run_coroutine_threadsafe(opened.__aexit__(None, None, None), loop).result(_SECONDS)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_SECONDS)
        loop.close()
