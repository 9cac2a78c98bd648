"""The routes on a real embedded store, for tests: tasks of the queue wait until the test says so."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import httpx
import pytest

from cragside.application import intake
from cragside.bootstrap import Container
from cragside.entrypoints.http.app import create_app
from cragside.ports.files import FetchedPage, FetchFailed, UploadStore
from cragside.settings import Settings


class Pages:
    """A web of a few pages; what is not among them answers 404. A failure is raised instead of a page."""

    def __init__(self, pages: Mapping[str, FetchedPage | FetchFailed]) -> None:
        self._pages = pages

    async def fetch(self, url: str, *, workspace: str = "") -> FetchedPage:
        page = self._pages.get(url)
        if isinstance(page, FetchedPage):
            return page
        raise page or FetchFailed(url, "fetch_failed", f"{url} answers 404.", status=404)

    async def close(self) -> None:
        """Nothing is open."""


class Knowledge:
    """An application on a store of its own; `members` are put in the place of the container's."""

    def __init__(
        self,
        home: Path,
        *,
        pages: Mapping[str, FetchedPage | FetchFailed] | None = None,
        upload_store: UploadStore | None = None,
        members: Mapping[str, Any] | None = None,
        **settings: Any,
    ):
        made = Settings(home=home, **settings)  # type: ignore[call-arg]
        given = {"fetcher": None if pages is None else Pages(pages), "upload_store": upload_store}
        given = {name: member for name, member in given.items() if member is not None}
        self.container = Container(made, **given, **(members or {}))
        self.queue = self.container.queue
        self.worker = self.container.worker
        self.app = create_app(self.container)
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")

    async def index(self) -> None:
        """Do all that waits: annotations and the graph, and what was not searchable at once."""
        await self.worker().run(until_idle=True, sweep=False)

    async def add(self, name: str, text: str, **fields: Any) -> dict[str, Any]:
        """Return the document that the service makes of a text, which it has to accept."""
        accepted = answer_of(await self.http.post("/v1/documents", json={"name": name, "text": text, **fields}), 202)
        (document,) = accepted["documents"]
        return dict(document)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the client and the store."""
        await self.http.aclose()
        await self.queue.close()
        await self.container.close()


def leave_to_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every text wait for a worker, as a long one does."""
    monkeypatch.setattr(intake, "_AT_ONCE_CHARACTERS", -1)


def answer_of(response: httpx.Response, status: int = 200) -> Any:
    """Return the JSON of an answer that has this status."""
    assert response.status_code == status, response.text
    return response.json()
