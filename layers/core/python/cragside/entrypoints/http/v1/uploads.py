"""Files that are larger than a request may be: where to send them."""

from datetime import datetime

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from cragside.bootstrap import Container
from cragside.entrypoints.http.body_limit import bounded_route
from cragside.entrypoints.http.errors import failures
from cragside.entrypoints.http.tenancy import Access


class UploadRequest(BaseModel):
    """Where the file shall go. Its name and the rest are said when it is there."""

    model_config = ConfigDict(extra="forbid")

    workspace: str | None = Field(None, description="The workspace; the default without it.")


class UploadBody(BaseModel):
    """A form for one file, `multipart/form-data` to `url`, and what to say when it is there."""

    id: str = Field(description="What POST /v1/documents calls it: `upload`.")
    url: str
    fields: dict[str, str] = Field(description="The fields that come before the file, which is called `file`.")
    expires_at: datetime = Field(description="Until when it can be sent; ISO 8601 in UTC.")
    max_bytes: int = Field(description="How large it may be.")


def router(container: Container, access: Access) -> APIRouter:
    """`/v1/documents/uploads`."""
    routes = APIRouter(
        prefix="/v1/documents/uploads",
        tags=["documents"],
        route_class=bounded_route(container.settings.max_body_bytes),
    )

    @routes.post("", status_code=201, responses=failures())
    async def offer(request: Request, asked: UploadRequest) -> UploadBody:
        """Have a file uploaded to a bucket by whoever asks. POST /v1/documents takes it in then."""
        offered = await container.uploads.offer(access.workspace(request, asked.workspace))
        return UploadBody.model_validate(offered, from_attributes=True)

    return routes
