"""A scripted SearXNG on loopback."""

import json
from typing import Any, Self

from aiohttp import web


class StubSearxng:
    """Answers `/search` with `body` (JSON unless it is bytes) while its context is open."""

    def __init__(self, *results: dict[str, Any]) -> None:
        self.body: Any = {"query": "", "results": list(results), "unresponsive_engines": []}
        self.status = 200
        self.headers: dict[str, str] = {}
        self.asked: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.authorisations: list[str | None] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._search)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _search(self, request: web.Request) -> web.Response:
        self.asked.append(dict(request.query))
        self.paths.append(request.path)
        self.authorisations.append(request.headers.get("Authorization"))
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        return web.Response(body=body, status=self.status, headers=self.headers)
