"""What the routes need of a container."""

from collections.abc import Sequence
from typing import Protocol

from cragside.application.enricher import Enricher
from cragside.application.intake import Intake
from cragside.application.memory import Memory
from cragside.application.preferences import WorkspacePreferences
from cragside.application.retriever import Retriever
from cragside.application.uploads import Uploads
from cragside.domain.context import CountTokens
from cragside.domain.tokens import IssuedToken
from cragside.ports.index_queue import IndexQueue
from cragside.ports.model_host import ModelHost
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
    def uploads(self) -> Uploads:
        """Large files that come in by way of a bucket."""
        ...

    @property
    def queue(self) -> IndexQueue:
        """What is still to be done."""
        ...

    @property
    def memory(self) -> Memory:
        """Conversations."""
        ...

    @property
    def retriever(self) -> Retriever:
        """Plain similarity search."""
        ...

    @property
    def preferences(self) -> WorkspacePreferences:
        """What can be changed while it serves."""
        ...

    @property
    def host(self) -> ModelHost | None:
        """The model host, None when none is configured."""
        ...

    @property
    def count_tokens(self) -> CountTokens:
        """How many tokens a text has."""
        ...

    def api_token(self) -> str | None:
        """The token that opens everything, None for none. Raises `ServiceUnavailable` when it cannot be read."""
        ...

    def issued_tokens(self) -> Sequence[IssuedToken]:
        """The tokens in the file. Raises `ServiceUnavailable` when they cannot be read."""
        ...

    async def close(self) -> None:
        """Close what was opened."""
        ...
