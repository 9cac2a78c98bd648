"""A client of the Model Context Protocol that leaves ends what it has begun."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from cragside.entrypoints.proxy.server import Server, listen
from cragside.ports.files import FetchedPage
from tests.knowledge import Knowledge, Pages


class Stuck(Pages):
    """A web whose pages never come. It notes that it was asked, and that the caller gave up."""

    def __init__(self) -> None:
        super().__init__({})
        self.asked, self.stopped = asyncio.Event(), asyncio.Event()

    async def fetch(self, url: str, *, workspace: str = "") -> FetchedPage:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()
        raise AssertionError("nothing comes")


@asynccontextmanager
async def served(knowledge: Knowledge) -> AsyncIterator[str]:
    """The address of the application on a port."""
    listening, started = listen("127.0.0.1", 0), asyncio.Event()
    server = Server(knowledge.app, started.set)
    running = asyncio.create_task(server.serve(sockets=[listening]))
    await asyncio.wait_for(started.wait(), 30)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        await running
        listening.close()


async def test_a_client_that_leaves_cancels_its_tool(tmp_path: Path) -> None:
    web = Stuck()
    knowledge = Knowledge(tmp_path, members={"fetcher": web})

    async def ask(address: str) -> None:
        async with (
            httpx2.AsyncClient(trust_env=False, timeout=60) as http,
            Client(streamable_http_client(address, http_client=http)) as client,
        ):
            await client.call_tool("ingest", {"url": "https://example.com/slow"})

    async with served(knowledge) as address:
        asking = asyncio.create_task(ask(address))
        await asyncio.wait_for(web.asked.wait(), 30)
        assert not web.stopped.is_set()
        asking.cancel()
        await asyncio.wait_for(web.stopped.wait(), 30)
        with suppress(asyncio.CancelledError):
            await asking
    await knowledge.close()
