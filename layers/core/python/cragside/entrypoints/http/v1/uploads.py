"""Upload forms for files that are larger than a request may be."""

from datetime import datetime

from fastapi import APIRouter, Request
from pydantic import Field

from cragside.application.uploads import UploadOffer
from cragside.entrypoints.http.body_limit import BoundedRoute
from cragside.entrypoints.http.errors import error_responses
from cragside.entrypoints.http.models import Shape, WorkspaceRequest
from cragside.entrypoints.http.request_access import AppContainer, choose_workspace


class UploadBody(Shape):
    """A form for one file, to be sent to `url` as `multipart/form-data`."""

    id: str = Field(description="Pass it to POST /v1/documents as `upload`.")
    url: str = Field(description="Where to send the form.")
    fields: dict[str, str] = Field(description="Fields to send before the file. The file's field is `file`.")
    expires_at: datetime = Field(description="The form is valid until then; ISO 8601 in UTC.")
    max_bytes: int = Field(description="The largest size of the file.")


router = APIRouter(
    prefix="/v1/documents/uploads", tags=["documents"], route_class=BoundedRoute, responses=error_responses()
)


@router.post("", status_code=201, response_model=UploadBody)
async def offer_upload(request: Request, asked: WorkspaceRequest, container: AppContainer) -> UploadOffer:
    """Return a form that uploads a file to a bucket. POST /v1/documents then takes it in."""
    return await container.uploads.offer(choose_workspace(request, asked.workspace))
