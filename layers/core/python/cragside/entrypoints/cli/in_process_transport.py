"""Lets a client reach the HTTP routes in this process, without a network."""

import httpx

from cragside.bootstrap import Container


class InProcess(httpx.AsyncBaseTransport):
    """Answers requests with the routes of a container. Errors of the routes are raised.

    The app is built for the first request, as FastAPI takes a third of a second to load.
    """

    def __init__(self, container: Container) -> None:
        self._container = container
        self._routes: httpx.ASGITransport | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The answer of the route."""
        if self._routes is None:
            from cragside.entrypoints.http.app import create_app

            self._routes = httpx.ASGITransport(create_app(self._container, raises=True))
        return await self._routes.handle_async_request(request)
