"""The chat client of langchain-ollama.

While it is imported, Ollama's library makes a client that nobody uses, which reads the environment: a proxy that httpx
does not know would end the import.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import httpx


@contextmanager
def _idle_clients() -> Iterator[None]:
    """Make httpx's synchronous clients unable to reach a host."""
    usual = httpx.Client
    httpx.Client = partial(usual, transport=httpx.BaseTransport())  # type: ignore[assignment, misc]
    try:
        yield
    finally:
        httpx.Client = usual  # type: ignore[misc]


with _idle_clients():
    from langchain_ollama import ChatOllama


def chat_client(url: str, transport: httpx.AsyncBaseTransport, **options: Any) -> ChatOllama:
    """Return the client of a host. `options` are those of its `httpx.AsyncClient`."""
    return ChatOllama(
        model="",
        base_url=url,
        temperature=0.0,
        sync_client_kwargs={"transport": httpx.BaseTransport()},
        async_client_kwargs={"transport": transport, **options},
    )
