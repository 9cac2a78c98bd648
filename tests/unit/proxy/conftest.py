import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from proxy_stub import FakeHost, Parts, Proxied, StubOllama, listening, own_app

from cragside.entrypoints.keyring import Keys
from cragside.entrypoints.proxy.app import create_proxy
from cragside.settings import Settings

Start = Callable[..., Awaitable[Proxied]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Starts a proxy before a stub Ollama: `await start(host=FakeHost(...), api_token="...")`."""
    async with AsyncExitStack() as stack:

        async def starting(host: FakeHost | None = None, base: str | None = None, **settings: Any) -> Proxied:
            ollama = StubOllama()
            server = await asyncio.start_server(ollama.serve, "127.0.0.1", 0)
            stack.callback(server.close)
            ollama.port = server.sockets[0].getsockname()[1]
            address = (base or "http://127.0.0.1:{port}").format(port=ollama.port)
            parts = Parts(Settings(ollama_base_url=address, **settings), upstream=host or FakeHost(None, None))
            port = await stack.enter_async_context(listening(create_proxy(parts, own_app(), keys=Keys(parts))))
            return Proxied(port, ollama, parts)

        yield starting


@pytest.fixture
async def proxied(start: Start) -> Proxied:
    return await start()
