"""The route of the Model Context Protocol."""

import asyncio
from importlib import import_module
from types import ModuleType

from fastapi import APIRouter, Request, Response

from cragside.domain.errors import NotFound
from cragside.entrypoints.http.errors import error_responses
from cragside.entrypoints.http.request_bodies import json_body

router = APIRouter(tags=["mcp"], responses=error_responses())


@router.post("/mcp", response_class=Response, include_in_schema=False)
@router.post("/mcp/", response_class=Response, include_in_schema=False)  # some hosts end an address with a slash
async def mcp(request: Request) -> Response:
    """Answer a message of the Model Context Protocol (streamable HTTP, without sessions and streams)."""
    body = await json_body(request)
    protocol = await asyncio.to_thread(load_protocol)
    if protocol is None:
        raise NotFound("The Model Context Protocol is not installed. Install the extra `mcp` of cragside.")
    answer: Response = await protocol.answer(request, body)
    return answer


def load_protocol() -> ModuleType | None:
    """The module that answers messages, None without the extra `mcp`. The first call takes a second: use a thread."""
    try:
        return import_module("cragside.entrypoints.mcp.streamable_http")
    except ModuleNotFoundError:
        return None
