"""The first `/docs`, `/openapi.json` and `/mcp` build what takes a second, in a thread: other requests go on."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from cragside.bootstrap import Container
from cragside.entrypoints.http import mcp, openapi
from cragside.entrypoints.http.app import create_app
from cragside.settings import Settings

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


def noting(threads: list[threading.Thread], build: Callable[..., Any]) -> Callable[..., Any]:
    def noted(*arguments: Any, **named: Any) -> Any:
        threads.append(threading.current_thread())
        return build(*arguments, **named)

    return noted


@pytest.mark.parametrize("path", ["/docs", "/openapi.json", "/mcp"])
async def test_a_thread_builds_what_a_first_request_needs(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    threads: list[threading.Thread] = []
    monkeypatch.setattr(mcp, "load_protocol", noting(threads, mcp.load_protocol))
    app = create_app(Container(Settings()))
    monkeypatch.setattr(app, "openapi", noting(threads, app.openapi))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        if path == "/mcp":
            accepted = {"Accept": "application/json, text/event-stream"}
            answer = await client.post(path, json=INITIALIZE, headers=accepted)
        else:
            answer = await client.get(path)
    assert answer.status_code == 200
    assert threads
    assert threading.main_thread() not in threads


async def test_requests_that_come_first_together_build_one_document(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    monkeypatch.setattr(openapi, "get_openapi", noting(threads, openapi.get_openapi))
    documents = await asyncio.gather(
        *(asyncio.to_thread(openapi.openapi_document, "/asked-together") for _ in range(8))
    )
    assert len(threads) == 1
    assert all(document is documents[0] for document in documents)
