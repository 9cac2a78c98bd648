"""Lets commands call the HTTP routes in this process."""

import httpx

from cragside.bootstrap import Container
from cragside.client import Client


class InProcess(httpx.AsyncBaseTransport):
    """Answers requests with the routes of a container. Errors of the routes are raised.

    The app is built for the first request, as FastAPI takes a third of a second to load.
    """

    def __init__(self, container: Container) -> None:
        self._container = container
        self._routes: httpx.ASGITransport | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the answer of the route."""
        if self._routes is None:
            from cragside.entrypoints.http.app import create_app

            self._routes = httpx.ASGITransport(create_app(self._container, raises=True))
        return await self._routes.handle_async_request(request)


def client_of(container: Container) -> Client:
    """Return a client of the container's routes. What is asked has deadlines of its own, which a user may raise."""
    transport = InProcess(container)
    return Client("http://localhost", workspace=container.settings.workspace, seconds=None, transport=transport)
