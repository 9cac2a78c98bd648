"""The embedded store: a folder a workspace, opened once, with the embedding model that built it."""

import asyncio
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cragside.adapters.lightrag.database import Database, StoreFormatError
from cragside.domain.context import CountTokens
from cragside.domain.errors import ConfigurationError
from cragside.ports.embedder import Embedder
from cragside.ports.language_model import LanguageModel
from cragside.ports.rag_repository import RagRepository
from cragside.ports.relevance_grader import RelevanceGrader

if TYPE_CHECKING:
    from cragside.adapters.lightrag.repository import Keywords, LightRagRepository

OpenEmbedder = Callable[[str | None], Awaitable[Embedder]]


class EmbeddedWorkspaces:
    """Opens workspaces below `home`. `open_embedder` gives a model by name, or the one for a new store for None."""

    def __init__(
        self,
        home: Path,
        *,
        embedding_model: str | None,
        open_embedder: OpenEmbedder,
        model: LanguageModel,
        ranker: RelevanceGrader,
        keywords_of: "Callable[[str], Keywords]",
        search_text: Callable[[str], str],
        count_tokens: CountTokens,
        chunk_tokens: int,
        chunk_overlap: int,
        parallel: int,
        saved_queries: int,
    ) -> None:
        self._home = home
        self._embedding_model = embedding_model
        self._open_embedder = open_embedder
        self._model = model
        self._ranker = ranker
        self._keywords_of = keywords_of
        self._search_text = search_text
        self._count_tokens = count_tokens
        self._chunk_tokens = chunk_tokens
        self._chunk_overlap = chunk_overlap
        self._parallel = parallel
        self._saved_queries = saved_queries
        self._open: dict[str, asyncio.Task[LightRagRepository]] = {}

    def folder(self, workspace: str) -> Path:
        """Where a workspace is stored."""
        return self._home / workspace

    async def repository(self, workspace: str) -> RagRepository:
        """The workspace's repository, opened at its first use.

        A request whose time is up leaves; the opening goes on and serves the next one.
        """
        opening = self._open.get(workspace)
        if opening is None:
            opening = asyncio.create_task(self._opened(workspace, self.folder(workspace)))
            self._open[workspace] = opening
            opening.add_done_callback(partial(self._forget_failure, workspace))
        return opening.result() if opening.done() else await asyncio.shield(opening)

    async def reindex(self, workspace: str, progress: Callable[[str], None]) -> int:
        """Build the workspace anew with the configured embedding model; returns the number of sources.

        The old store stays in place until the new one is complete.
        """
        opened = self._open.pop(workspace, None)
        # Texts are read back without their vectors, so the old model may be out of reach.
        old = await opened if opened else await self._opened(workspace, self.folder(workspace), check=False)
        fresh_folder = self.folder(workspace).with_name(f"{workspace}.reindexing")
        shutil.rmtree(fresh_folder, ignore_errors=True)
        fresh = await self._opened(f"{workspace}.reindexing", fresh_folder)
        count = 0
        async for source in old.documents():
            await fresh.save_documents([source])
            progress(source.name)
            count += 1
        await fresh.close()
        await old.close()
        _replace(self.folder(workspace), fresh_folder)
        return count

    def _forget_failure(self, workspace: str, opening: "asyncio.Task[LightRagRepository]") -> None:
        if opening.cancelled() or opening.exception():
            self._open.pop(workspace, None)

    async def close(self) -> None:
        """Close every workspace."""
        while self._open:
            await (await self._open.popitem()[1]).close()

    async def _opened(self, workspace: str, folder: Path, *, check: bool = True) -> "LightRagRepository":
        # Importing LightRAG takes a second or two: whoever never opens a store should not wait for it.
        from cragside.adapters.lightrag.engine import build_engine
        from cragside.adapters.lightrag.repository import LightRagRepository

        try:
            database = Database.acquire(folder)
        except StoreFormatError as error:
            raise ConfigurationError(str(error)) from error
        except sqlite3.Error as error:
            raise ConfigurationError(f"The store {folder} cannot be opened: {error}. Check RAG_HOME.") from error
        except OSError as error:
            raise ConfigurationError(
                f"The store {folder} cannot be opened: {error.strerror}. Check RAG_HOME."
            ) from error
        try:
            embedder = await self._embedder(database.meta("embedding_model"), workspace, check)
            engine = build_engine(
                folder,
                workspace=workspace,
                embedder=embedder,
                model=self._model,
                count_tokens=self._count_tokens,
                search_text=self._search_text,
                chunk_tokens=self._chunk_tokens,
                chunk_overlap=self._chunk_overlap,
                parallel=self._parallel,
            )
            await engine.initialize_storages()
        except BaseException:
            database.release()
            raise
        return LightRagRepository(
            engine,
            database,
            folder,
            workspace=workspace,
            embedding_model=embedder.name,
            keywords_of=self._keywords_of,
            ranker=self._ranker,
            saved_queries=self._saved_queries,
        )

    async def _embedder(self, stored: str | None, workspace: str, check: bool) -> Embedder:
        if stored is None or not check:
            return await self._open_embedder(self._embedding_model)
        if self._embedding_model is None:
            return await self._open_embedder(stored)
        wanted = await self._open_embedder(self._embedding_model)
        if wanted.name != stored:
            raise ConfigurationError(
                f"Workspace {workspace} was built with the embedding model {stored}, but RAG_EMBEDDING_MODEL names "
                f"{wanted.name}. Unset the variable, or build the store anew: cragside reindex --workspace {workspace}"
            )
        return wanted


def _replace(folder: Path, fresh: Path) -> None:
    outdated = folder.with_name(f"{folder.name}.outdated")
    shutil.rmtree(outdated, ignore_errors=True)
    folder.rename(outdated)
    fresh.rename(folder)
    shutil.rmtree(outdated)
