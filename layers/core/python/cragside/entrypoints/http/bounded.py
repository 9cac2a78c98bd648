"""Routes whose bodies are models: read within the limit, and as strictly as JSON is defined."""

from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute

from cragside.entrypoints.http.body import json_body


def bounded_route(limit: int) -> type[APIRoute]:
    """Routes that read JSON, and refuse other types and more than `limit` bytes before they look at a body."""

    class BoundedRoute(APIRoute):
        """A route whose body is read within the limit."""

        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            """FastAPI's handler, given a request whose body has been read."""
            handle = super().get_route_handler()

            async def answer(request: Request) -> Response:
                if self.body_field is not None:
                    request = ReadRequest(request, await json_body(request, limit))
                return await handle(request)

            return answer

    return BoundedRoute


class ReadRequest(Request):
    """A request whose body has been read. Its JSON is what JSON allows: no NaN, no half of a surrogate pair."""

    def __init__(self, request: Request, body: bytes) -> None:
        super().__init__(request.scope, request.receive)
        self._body = body

    async def json(self) -> Any:
        """The body's value. Raises `json.JSONDecodeError`, which FastAPI expects."""
        return orjson.loads(self._body)
