"""The route of the Model Context Protocol."""

from fastapi import APIRouter, Request, Response

from cragside.domain.errors import NotFound
from cragside.entrypoints.http.body_limit import json_body
from cragside.entrypoints.http.errors import error_responses

router = APIRouter(tags=["mcp"], responses=error_responses())


@router.post("/mcp", response_class=Response, include_in_schema=False)
@router.post("/mcp/", response_class=Response, include_in_schema=False)  # some hosts end an address with a slash
async def mcp(request: Request) -> Response:
    """Answer a message of the Model Context Protocol (streamable HTTP, without sessions and streams)."""
    body = await json_body(request)
    try:
        from cragside.entrypoints.mcp.streamable_http import answer  # the protocol's types take a second
    except ModuleNotFoundError as error:
        raise NotFound("The Model Context Protocol is not installed. Install the extra `mcp` of cragside.") from error
    return await answer(request, body)
