"""The container of a function that may be asked for its health alone."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from cragside.application.enricher import Enricher
from cragside.application.intake import Intake
from cragside.application.memory import Memory
from cragside.application.preferences import WorkspacePreferences
from cragside.application.retriever import Retriever
from cragside.application.uploads import Uploads
from cragside.domain.context import CountTokens
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.tokens import IssuedToken
from cragside.ports.index_queue import IndexQueue
from cragside.ports.model_host import ModelHost
from cragside.ports.rag_repository import Workspaces
from cragside.settings import Settings

if TYPE_CHECKING:
    from cragside.bootstrap import Container

# Content words, so that everything from keywords to grading has something to do.
_QUESTION = "Which documents describe how this knowledge base works?"


class LateContainer:
    """Builds the container when something of it is needed: its imports take longer than all of INIT should."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._built: Container | None = None

    @property
    def built(self) -> "Container":
        """The container."""
        if self._built is None:
            from cragside.bootstrap import build_container

            self._built = build_container(self.settings)
        return self._built

    @property
    def enricher(self) -> Enricher:
        """Evidence for prompts."""
        return self.built.enricher

    @property
    def workspaces(self) -> Workspaces:
        """The knowledge bases."""
        return self.built.workspaces

    @property
    def intake(self) -> Intake:
        """Documents in."""
        return self.built.intake

    @property
    def uploads(self) -> Uploads:
        """Large files that come in by way of a bucket."""
        return self.built.uploads

    @property
    def queue(self) -> IndexQueue:
        """What is still to be done."""
        return self.built.queue

    @property
    def memory(self) -> Memory:
        """Conversations."""
        return self.built.memory

    @property
    def retriever(self) -> Retriever:
        """Plain similarity search."""
        return self.built.retriever

    @property
    def preferences(self) -> WorkspacePreferences:
        """What can be changed while it serves."""
        return self.built.preferences

    @property
    def host(self) -> ModelHost | None:
        """The model host, None when none is configured."""
        return self.built.host

    @property
    def count_tokens(self) -> CountTokens:
        """How many tokens a text has."""
        return self.built.count_tokens

    def api_token(self) -> str | None:
        """The token that requests have to bring, None for none. Raises `ServiceUnavailable` when it cannot be read."""
        return self.built.api_token()

    def issued_tokens(self) -> Sequence[IssuedToken]:
        """The tokens in the file. Raises `ServiceUnavailable` when they cannot be read."""
        return self.built.issued_tokens()

    async def try_out(self) -> None:
        """Load everything and answer a question with it; what is down is left for the requests to report."""
        await self.built.prepare()
        with suppress(ServiceUnavailable):
            self.api_token()
        with suppress(ServiceUnavailable):
            await self.enricher.enrich({"prompt": f"{self.settings.command_prefix} {_QUESTION}"})

    async def disconnect(self) -> None:
        """Close the connections to other hosts and forget the token; the next use opens and reads them anew."""
        if self._built is not None:
            await self._built.disconnect()

    async def close(self) -> None:
        """Close what was opened, if anything was."""
        if self._built is not None:
            await self._built.close()
