"""Sample documents, for whoever has none yet."""

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from cragside.domain.errors import CragsideError
from cragside.domain.indexing import Acceptance
from cragside.entrypoints.http.body_limit import BoundedRoute
from cragside.entrypoints.http.errors import error_responses, for_client
from cragside.entrypoints.http.models import WorkspaceRequest
from cragside.entrypoints.http.request_access import AppContainer, choose_workspace, note_documents
from cragside.entrypoints.http.v1.document_models import AcceptedDocuments
from cragside.entrypoints.http.v1.request_intake import answer_of
from cragside.entrypoints.samples.documents import QUESTIONS, corpus, count


class Samples(BaseModel):
    """The sample documents, and questions that they answer."""

    documents: int = Field(description="How many documents there are.")
    questions: list[str] = Field(description="Questions that they answer.")


router = APIRouter(prefix="/v1/samples", tags=["documents"], route_class=BoundedRoute, responses=error_responses())


@router.get("")
async def get_samples() -> Samples:
    """How many sample documents come with cragside, and questions to try them with."""
    return Samples(documents=count(), questions=list(QUESTIONS))


@router.post("", status_code=202)
async def add_samples(request: Request, asked: WorkspaceRequest, container: AppContainer) -> AcceptedDocuments:
    """Add the sample documents to a workspace. They are indexed afterwards, like any others."""
    workspace = choose_workspace(request, asked.workspace)
    await (await container.workspaces.open(workspace)).documents.check_writable()
    accepted: list[Acceptance] = []
    refused: list[tuple[str, CragsideError]] = []
    for text in corpus():
        try:
            accepted.append(await container.intake.text(text, workspace=workspace))
        except CragsideError as error:
            refused.append((text.name, for_client(error)))
    note_documents(request, (acceptance.record.id for acceptance in accepted))
    return answer_of(accepted, refused)
