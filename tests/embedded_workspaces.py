"""Embedded workspaces with models that cost nothing, and the stores behind workspaces."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from cragside.adapters.embedded.keywords import keywords_of
from cragside.adapters.embedded.language_model import EmbeddedLanguageModel
from cragside.ports.embedder import Embedder
from cragside.ports.models import LanguageModel, RelevanceGrader
from cragside.store.backends.interface import Backend
from cragside.store.backends.sqlite import SqliteBackend
from cragside.store.open_store import Store
from cragside.store.opening import StoreOpener
from cragside.store.repository import LightRagRepository
from cragside.store.sqlite.database import Database
from cragside.store.workspaces import MOST_OPEN, PATIENCE_SECONDS, Workspaces
from tests.fakes import as_written


def embedded_workspaces(
    home: Path,
    *,
    open_embedder: Callable[[str | None], Awaitable[Embedder]],
    ranker: RelevanceGrader,
    embedding_model: str | None = None,
    model: LanguageModel | None = None,
    chunk_words: tuple[int, int] = (100, 10),
    part_passages: int = 20,
    lease_seconds: float = 30.0,
    saved_queries: int = 3,
    most_open: int = MOST_OPEN,
    patience: float = PATIENCE_SECONDS,
    language_of: Callable[[str], str | None] = lambda question: None,
    question_seconds: float = 5.0,
    backend: Backend | None = None,
) -> Workspaces:
    """Workspaces below a folder. `chunk_words` are a passage's longest length and overlap."""

    async def chunking(_: str) -> tuple[int, int]:
        return chunk_words

    opener = StoreOpener(
        backend=backend or SqliteBackend(),
        embedding_model=embedding_model,
        open_embedder=open_embedder,
        model=model or EmbeddedLanguageModel(),
        search_text=str.lower,
        asked_text=str.lower,
        count_tokens=lambda text: len(text.split()),
        chunking=chunking,
        parallel=4,
        part_passages=part_passages,
        lease_seconds=lease_seconds,
        question_seconds=question_seconds,
    )
    return Workspaces(
        home,
        opener=opener,
        repository=partial(
            LightRagRepository,
            keywords_of=keywords_of,
            language_of=language_of,
            correct=as_written,
            explain=lambda reading, passages: reading,
            ranker=ranker,
            saved_queries=saved_queries,
        ),
        most_open=most_open,
        patience=patience,
    )


async def store_of(workspaces: Workspaces, name: str) -> Store:
    """The open store of a workspace that has one: for tests of what its writers do to each other."""
    store = await workspaces._existing(name)
    assert store is not None
    return store


def open_stores() -> set[str]:
    """The names of the folders whose stores are open in this process."""
    return {path.parent.name for path in Database._open}
