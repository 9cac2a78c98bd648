"""A scripted rerank endpoint on loopback, in one of two forms: it answers the best first and notes what it is asked."""

import asyncio
from typing import Any, Literal, Self

from aiohttp import web

FIELDS = {"documents": "relevance_score", "texts": "score"}


class StubReranker:
    """Serves `/rerank` while its context is open. A text that shares a long word with the query scores `high`."""

    def __init__(self, form: Literal["documents", "texts"] = "documents", *, high: float = 0.9, low: float = 0.1):
        self.form = form
        self.high, self.low = high, low
        self.status: int | None = None
        self.body: bytes | None = None
        self.key: str | None = None
        self.longest = 1_000_000
        self.refusal = 500
        self.mishaps = 0  # requests that are refused at first
        self.accepts: int | None = None  # requests, before it is out of order
        self.late = asyncio.Event()
        self.late.set()
        self.bodies: list[dict[str, Any]] = []
        self.authorisations: list[str | None] = []
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/rerank", self._rerank)
        self._runner = web.AppRunner(app, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/rerank"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.late.set()
        await self._runner.cleanup()

    async def _rerank(self, request: web.Request) -> web.Response:
        asked = await request.json()
        self.bodies.append(asked)
        self.authorisations.append(request.headers.get("Authorization"))
        await self.late.wait()
        if self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}":
            return web.Response(status=401, text=f"bad header: {request.headers.get('Authorization')}")
        if self.status is not None:
            return web.Response(status=self.status, text=str(dict(request.headers)), headers={"Location": "/elsewhere"})
        if self.body is not None:
            return web.Response(body=self.body, content_type="application/json")
        if self.form not in asked:
            return web.Response(status=422, text=f"missing field `{self.form}`")
        self.mishaps -= 1
        if self.mishaps >= 0 or any(len(text) > self.longest for text in (asked["query"], *asked[self.form])):
            return web.Response(status=self.refusal, text="input is too large to process")
        if self.accepts is not None:
            if self.accepts == 0:
                return web.Response(status=503)
            self.accepts -= 1
        words = {word.strip("?.,").lower() for word in asked["query"].split() if len(word) > 4}
        scores = [self.high if words & set(text.lower().split()) else self.low for text in asked[self.form]]
        ranks = [{"index": n, FIELDS[self.form]: score} for n, score in enumerate(scores)]
        ranks.sort(key=lambda rank: -rank[FIELDS[self.form]])
        return web.json_response(ranks if self.form == "texts" else {"model": "stub", "results": ranks})
