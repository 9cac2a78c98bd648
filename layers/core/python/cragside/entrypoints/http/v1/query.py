"""`POST /v1/query`: passages for a question, with their relevance and their similarity."""

from fastapi import APIRouter, Request

from cragside.entrypoints.http.errors import error_responses
from cragside.entrypoints.http.passage_search import PassageAnswer, PassageQuery, PassageSearch
from cragside.entrypoints.http.request_access import AppContainer, choose_workspace, end_of
from cragside.entrypoints.http.request_bodies import BoundedRoute

router = APIRouter(tags=["query"], route_class=BoundedRoute, responses=error_responses())


@router.post("/v1/query")
async def query_passages(request: Request, body: PassageQuery, container: AppContainer) -> PassageAnswer:
    """Passages for a question with their relevance and their similarity, without a web search."""
    search = PassageSearch(container, choose_workspace(request, body.workspace), end_of(request))
    return await search.answer(body)
