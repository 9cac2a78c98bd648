"""Opens the store of a workspace with the embedding model that built it."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cragside.domain.context import CountTokens
from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.domain.names import owner_of, spoken
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.embedder import Embedder
from cragside.ports.models import LanguageModel
from cragside.store.backends.interface import Backend
from cragside.store.ledger.failures import LedgerDamaged, LedgerError

if TYPE_CHECKING:
    from cragside.store.chunking import Chunker
    from cragside.store.ledger.ledger import Ledger
    from cragside.store.store import Store

OpenEmbedder = Callable[[str | None], Awaitable[Embedder]]
# A workspace's longest passage and what neighbours share, in tokens; asked for each document.
Chunking = Callable[[str], Awaitable[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class StoreOpener:
    """Opens stores in `backend`. `open_embedder` gives a model by name, or for None the model for a new store.

    `search_text` gives what full-text search sees of a text, `asked_text` what it looks for to answer a question.
    A store is opened without asking its model, so that whatever needs no vectors works while the model is down.
    """

    backend: Backend
    embedding_model: str | None
    open_embedder: OpenEmbedder
    model: LanguageModel
    search_text: Callable[[str], str]
    asked_text: Callable[[str], str]
    count_tokens: CountTokens
    chunking: Chunking
    parallel: int
    part_passages: int
    lease_seconds: float
    question_seconds: float
    clock: Clock = SYSTEM_CLOCK

    async def open(self, workspace: str, folder: Path, *, check: bool = True, read_only: bool = False) -> "Store":
        """Open the store of a folder, which is made unless it is only read.

        `check` compares the embedding models and the storages. Raises `ServiceUnavailable` and `ConfigurationError`.
        """
        # Importing LightRAG takes a second or two.
        from cragside.store.engine.embedding_cache import CachedEmbedder
        from cragside.store.engine.engine import build_engine
        from cragside.store.store import Store

        ledger = await self.ledger(workspace, folder, read_only=read_only)
        try:
            stored, generation = await ledger.opened_with()
            anew = f", or build the store anew: cragside reindex --workspace {owner_of(workspace)}"
            remedy = "" if read_only else anew
            model = await self._embedder(stored if check else None, workspace, remedy)
            embedder = CachedEmbedder(model, ledger, self.question_seconds)
            storages = self.backend.storages()
            if check:
                _check_storages(workspace, ledger.storages, storages.names)
            place = self.backend.place_of(folder, generation)
            engine = build_engine(
                place,
                folder=self.backend.files_of(folder),
                workspace=_lock_name(place),
                storages=storages,
                embedder=embedder,
                model=self.model,
                asked_text=self.asked_text,
                parallel=self.parallel,
            )
            await engine.initialize_storages()
        except BaseException as error:
            ledger.release()
            if isinstance(error, LedgerError):
                raise unopened(workspace, error, read_only=read_only) from error.__cause__
            raise
        return Store(
            engine,
            ledger,
            workspace=workspace,
            generation=generation,
            embedder=embedder,
            chunker=partial(self._chunker, workspace),
            count_tokens=self.count_tokens,
            part_passages=self.part_passages,
            lease_seconds=self.lease_seconds,
            clock=self.clock,
        )

    async def _chunker(self, workspace: str) -> "Chunker":
        from cragside.store.chunking import chunker

        return chunker(self.count_tokens, *await self.chunking(workspace))

    async def ledger(self, workspace: str, folder: Path, *, read_only: bool = False) -> "Ledger":
        """Open the ledger of a folder alone. Raises `ServiceUnavailable`."""
        try:
            return await self.backend.open_ledger(folder, workspace, search_text=self.search_text, read_only=read_only)
        except LedgerError as error:
            raise unopened(workspace, error, read_only=read_only) from error.__cause__
        except OSError as error:
            raise out_of_reach(workspace, error) from error

    async def _embedder(self, stored: str | None, workspace: str, remedy: str) -> Embedder:
        if stored is None:
            return await self.open_embedder(self.embedding_model)
        if self.embedding_model is None:
            return await self.open_embedder(stored)
        wanted = await self.open_embedder(self.embedding_model)
        if wanted.name != stored:
            raise ConfigurationError(
                f"Workspace {spoken(workspace)} was built with the embedding model {stored}, but RAG_EMBEDDING_MODEL "
                f"names {wanted.name}. Unset the variable{remedy}"
            )
        return wanted


def _check_storages(workspace: str, built: Mapping[str, str], chosen: Mapping[str, str]) -> None:
    for role, name in built.items():
        if chosen[role] != name:
            setting = f"RAG_{role.upper()}_STORAGE"
            raise ConfigurationError(
                f"Workspace {spoken(workspace)} was built with {name}, but {setting} is {chosen[role]}. Set it to "
                f"{name}, or build the store anew: cragside reindex --workspace {owner_of(workspace)}",
                variable=setting,
            )


def unopened(workspace: str, error: LedgerError, *, read_only: bool) -> ServiceUnavailable:
    """Return the error for a store whose ledger fails."""
    if isinstance(error, LedgerDamaged):
        return damaged(workspace, error.reason, read_only=read_only)
    return ServiceUnavailable("knowledge_base", f"The store of workspace {spoken(workspace)} {error.unusable}.")


def damaged(workspace: str, how: str, *, read_only: bool) -> ServiceUnavailable:
    """Return the error for a damaged store."""
    remedy = "Bake it again." if read_only else "Stop cragside, move its folder away, and ingest again."
    message = f"The store of workspace {spoken(workspace)} is damaged ({how}). {remedy}"
    return ServiceUnavailable("knowledge_base", message)


def out_of_reach(workspace: str, error: OSError) -> ServiceUnavailable:
    """Return the error for a store that the system does not let this process open."""
    message = f"The store of workspace {spoken(workspace)} cannot be opened: {error.strerror}. Check RAG_HOME."
    return ServiceUnavailable("knowledge_base", message)


def _lock_name(place: str) -> str:
    """Name LightRAG's locks, which it keeps by workspace for the whole process, differently in each place."""
    return hashlib.sha256(place.encode()).hexdigest()[:16]
