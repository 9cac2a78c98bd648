"""A stub SearXNG: the JSON API of `/search`, 200 ms, three results. Loopback only."""

import argparse
from collections import Counter
from urllib.parse import parse_qs

from benchmarks.stubs.serving import Answer, Request, Route, as_json, serve, until


class StubSearxng:
    """The search route, its latency and the counts."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.calls: Counter[str] = Counter()

    def routes(self) -> dict[str, Route]:
        return {
            "/search": self.search,
            "/healthz": self.alive,
            "/config": self.config,
            "/stub/calls": self.counts,
            "/stub/reset": self.reset,
        }

    async def search(self, request: Request) -> Answer:
        asked = parse_qs(f"{request.query}&{request.body.decode()}")
        query = asked.get("q", [""])[0]
        self.calls["search"] += 1
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
        await until(request.arrived + self._seconds)
        return as_json(
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

    async def alive(self, _request: Request) -> Answer:
        return Answer(b"OK", "text/plain")

    async def config(self, _request: Request) -> Answer:
        return as_json({"version": "2026.1.1", "engines": [{"name": "stub", "enabled": True}]})

    async def counts(self, _request: Request) -> Answer:
        return as_json(dict(self.calls))

    async def reset(self, _request: Request) -> Answer:
        self.calls.clear()
        return as_json({})


def main() -> None:
    """Serve until the process ends; the first line printed is the port."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--search-ms", type=float, default=200)
    serve(StubSearxng(parser.parse_args().search_ms / 1000).routes())


if __name__ == "__main__":
    main()
