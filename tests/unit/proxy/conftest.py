import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

import pytest
from proxy_stub import FakeHost, FakePreferences, Proxied, StubOllama, faked, listening, own_app

from cragside.domain.tokens import IssuedToken
from cragside.entrypoints.access import Keys
from cragside.entrypoints.proxy.app import Proxy
from cragside.settings import Settings

Start = Callable[..., Awaitable[Proxied]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Starts a proxy before a stub Ollama: `await start(host=FakeHost(...), api_token="...")`."""
    async with AsyncExitStack() as stack:

        async def starting(
            host: FakeHost | None = None,
            base: str | None = None,
            issued: Sequence[IssuedToken] = (),
            prompts: Any = None,
            model_host: str = "",
            **settings: Any,
        ) -> Proxied:
            ollama = StubOllama()
            server = await asyncio.start_server(ollama.serve, "127.0.0.1", 0)
            stack.callback(server.close)
            ollama.port = server.sockets[0].getsockname()[1]
            address = (base or "http://127.0.0.1:{port}").format(port=ollama.port)
            if model_host:
                settings["model_host"] = model_host.format(port=ollama.port)
            container = faked(
                Settings(ollama_base_url=address, **settings),
                upstream=host or FakeHost(None, None),
                tokens=SimpleNamespace(tokens=lambda: issued),
                preferences=FakePreferences(**(prompts or {})),
            )
            port = await stack.enter_async_context(listening(Proxy(container, own_app(), keys=Keys(container))))
            return Proxied(port, ollama, container)

        yield starting


@pytest.fixture
async def proxied(start: Start) -> Proxied:
    return await start()
