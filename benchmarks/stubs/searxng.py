"""A stub SearXNG: the JSON API of `/search`, 200 ms, three results. Loopback only."""

import argparse
import time
from collections import Counter

from aiohttp import web

from benchmarks.stubs.serving import serve, until


class StubSearxng:
    """The search route, its latency and the counts."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.calls: Counter[str] = Counter()

    def app(self) -> web.Application:
        app = web.Application()
        app.add_routes(
            [
                web.get("/search", self.search),
                web.post("/search", self.search),
                web.get("/healthz", self.alive),
                web.get("/config", self.config),
                web.get("/stub/calls", self.counts),
                web.post("/stub/reset", self.reset),
            ]
        )
        return app

    async def search(self, request: web.Request) -> web.Response:
        began = time.monotonic()
        form = await request.post() if request.method == "POST" else {}
        query = str(request.query.get("q") or form.get("q") or "")
        self.calls["search"] += 1
        await until(began + self._seconds)
        results = [
            {
                "url": f"https://example.org/{number}",
                "title": f"{query.title()}, part {number}",
                "content": f"The records about {query} in part {number} name the people, the years and the places.",
                "engine": "stub",
                "engines": ["stub"],
                "category": "general",
                "score": 1 / number,
                "positions": [number],
                "publishedDate": None,
            }
            for number in (1, 2, 3)
        ]
        return web.json_response(
            {
                "query": query,
                "results": results,
                "answers": [],
                "corrections": [],
                "infoboxes": [],
                "suggestions": [],
                "unresponsive_engines": [],
            }
        )

    async def alive(self, _request: web.Request) -> web.Response:
        return web.Response(text="OK")

    async def config(self, _request: web.Request) -> web.Response:
        return web.json_response({"version": "2026.1.1", "engines": [{"name": "stub", "enabled": True}]})

    async def counts(self, _request: web.Request) -> web.Response:
        return web.json_response(dict(self.calls))

    async def reset(self, _request: web.Request) -> web.Response:
        self.calls.clear()
        return web.json_response({})


def main() -> None:
    """Serve until the process ends; the first line printed is the port."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--search-ms", type=float, default=200)
    serve(StubSearxng(parser.parse_args().search_ms / 1000).app())


if __name__ == "__main__":
    main()
