"""The routes on a real embedded store, for tests: nothing is indexed before the test says so."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx

from cragside.adapters.embedded.annotator import EmbeddedAnnotator
from cragside.adapters.embedded.grader import EmbeddedGrader
from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.adapters.local.queue import LocalQueue
from cragside.application.attempts import Attempts
from cragside.application.indexer import Indexer
from cragside.application.intake import Intake
from cragside.application.retriever import Retriever
from cragside.application.worker import Worker
from cragside.bootstrap import build_container
from cragside.domain.document import SourceText
from cragside.domain.errors import PayloadTooLarge, ValidationError
from cragside.entrypoints.http.app import create_app
from cragside.ports.page_fetcher import FetchedPage, FetchFailed
from cragside.settings import Settings


class Pages:
    """A web of a few pages; what is not among them answers 404. A failure is raised instead of a page."""

    def __init__(self, pages: Mapping[str, FetchedPage | FetchFailed]) -> None:
        self._pages = pages

    async def fetch(self, url: str) -> FetchedPage:
        page = self._pages.get(url)
        if isinstance(page, FetchedPage):
            return page
        raise page or FetchFailed(url, "fetch_failed", f"{url} answers 404.", status=404)

    async def close(self) -> None:
        """Nothing is open."""


class Knowledge:
    """An application on a store of its own."""

    def __init__(self, home: Path, *, pages: Mapping[str, FetchedPage | FetchFailed] | None = None, **settings: Any):
        made = Settings(_env_file=None, home=home, **settings)  # type: ignore[call-arg]
        container = build_container(made)
        queue, grader = LocalQueue(home), EmbeddedGrader(WordLlamaEmbedder())
        self.container = container
        self.queue = queue
        self.worker = lambda: Worker(
            queue,
            Attempts(queue, Indexer(container.workspaces, EmbeddedAnnotator()), attempts=3),
            container.workspaces,
            parallel=4,
        )
        application: Any = SimpleNamespace(
            settings=made,
            enricher=container.enricher,
            workspaces=container.workspaces,
            intake=Intake(container.workspaces, queue, loader=container.loader, fetcher=Pages(pages or {})),
            queue=queue,
            retriever=Retriever(
                container.workspaces, grader, results=5, threshold=0.7, strategy="similarity"
            ),
            count_tokens=container.count_tokens,
            api_token=container.api_token,
            close=container.close,
        )
        self.app = create_app(application)
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")

    async def index(self) -> None:
        """Do all that waits."""
        await self.worker().run(until_idle=True, sweep=False)

    async def close(self) -> None:
        """Close the client and the store."""
        await self.http.aclose()
        await self.queue.close()
        await self.container.close()
