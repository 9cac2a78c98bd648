"""What the routes need of a container."""

from typing import Protocol

from cragside.application.enricher import Enricher
from cragside.application.intake import Intake
from cragside.application.retriever import Retriever
from cragside.domain.context import CountTokens
from cragside.ports.index_queue import IndexQueue
from cragside.ports.rag_repository import Workspaces
from cragside.settings import Settings


class Application(Protocol):
    """A container, as far as the routes use it; one that builds itself at the first question will do."""

    @property
    def settings(self) -> Settings:
        """The settings."""
        ...

    @property
    def enricher(self) -> Enricher:
        """Evidence for prompts."""
        ...

    @property
    def workspaces(self) -> Workspaces:
        """The knowledge bases."""
        ...

    @property
    def intake(self) -> Intake:
        """Documents in."""
        ...

    @property
    def queue(self) -> IndexQueue:
        """What is still to be done."""
        ...

    @property
    def retriever(self) -> Retriever:
        """Passages by likeness."""
        ...

    @property
    def count_tokens(self) -> CountTokens:
        """How many tokens a text has."""
        ...

    def api_token(self) -> str | None:
        """The token that opens every workspace, None for none."""
        ...

    async def close(self) -> None:
        """Close what was opened."""
        ...
