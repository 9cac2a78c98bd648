"""The knowledge base of one workspace: LightRAG's graph and vectors behind the `RagRepository` port."""

import asyncio
import hashlib
import sqlite3
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, unquote

from filelock import AsyncFileLock
from lightrag import QueryParam
from lightrag.base import DocStatus
from lightrag.utils import sanitize_text_for_encoding

from cragside.adapters.lightrag.database import Database
from cragside.adapters.lightrag.engine import Engine
from cragside.domain.document import Document, SourceText
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.query import Query
from cragside.domain.search import Mode, SimilaritySearch
from cragside.ports.rag_repository import Indexed, KnowledgeStatus, RagRepository
from cragside.ports.relevance_grader import RelevanceGrader

# LightRAG refuses shorter queries.
_SHORTEST_QUERY = 3
# Entities and relations looked up for a query, edges followed from each entity, and tokens that LightRAG may fill
# with their descriptions. All of it only leads to passages; more cost more and changed no route of the evals.
_RELATED = 3
_EDGES_PER_ENTITY = 2
_DESCRIPTION_TOKENS = 3000
# Candidates beyond those asked for, so that the ranking has a choice.
_RESERVE = 2
# Candidates that `get_relevant_documents` grades.
_GRADED = 10


class Keywords(Protocol):
    """What LightRAG searches entities (`low`) and relations (`high`) by."""

    @property
    def low(self) -> list[str]:
        """Names of things."""
        ...

    @property
    def high(self) -> list[str]:
        """Subjects."""
        ...


class LightRagRepository(RagRepository):
    """Retrieves in LightRAG's `mix` mode with keywords given, so that a query costs one embedding call and no other.

    LightRAG mixes passages from vectors and graph without scores; `ranker`, a cheap grader, puts them in order. Writers
    of other processes are kept out by a lock file, readers are not.
    """

    def __init__(
        self,
        engine: Engine,
        database: Database,
        folder: Path,
        *,
        workspace: str,
        embedding_model: str,
        keywords_of: Callable[[str], Keywords],
        ranker: RelevanceGrader,
        saved_queries: int,
    ) -> None:
        self._engine = engine
        self._reader = engine.reader(_EDGES_PER_ENTITY)
        self._database = database
        self._workspace = workspace
        self._embedding_model = embedding_model
        self._keywords_of = keywords_of
        self._ranker = ranker
        self._saved_queries = saved_queries
        self._generation = database.generation()
        self._seen_version = database.data_version()
        self._writing = asyncio.Lock()
        self._write_lock = AsyncFileLock(folder / "writer.lock", timeout=-1)

    @property
    def replaced(self) -> bool:
        """Whether somebody has replaced the store's whole content, so that it has to be opened anew."""
        version = self._database.data_version()
        if version == self._seen_version:
            return False
        self._seen_version = version
        return self._database.generation() != self._generation

    async def save_query(self, query: Query) -> None:
        """Remember a query; beyond the configured number the oldest are forgotten."""
        if self._saved_queries == 0:
            return
        row = (_storable(query.id), _storable(query.text), query.created_at.isoformat())
        try:
            self._database.write_at_once(
                ("INSERT OR REPLACE INTO query VALUES (?, ?, ?)", row),
                ("DELETE FROM query WHERE rowid <= (SELECT max(rowid) FROM query) - ?", (self._saved_queries,)),
            )
        except sqlite3.Error as error:
            raise ServiceUnavailable("knowledge_base", f"The query could not be recorded: {error}.") from error

    async def get_query(self, query_id: str) -> Query | None:
        """A remembered query, or None."""
        row = self._database.one("SELECT id, text, created_at FROM query WHERE id = ?", (_storable(query_id),))
        return None if row is None else Query(row[0], row[1], self._workspace, datetime.fromisoformat(row[2]))

    async def save_documents(self, documents: Sequence[SourceText]) -> list[Indexed]:
        """Index whole texts through LightRAG's pipeline; see the port for what happens to known ones."""
        async with self.writing():
            outcomes: dict[str, Indexed] = {}
            fresh: dict[str, SourceText] = {}
            for document in documents:
                if known := await self._unchanged(document):
                    outcomes[document.name] = known
                else:
                    fresh[document.name] = document
            if fresh:
                self._database.set_meta("embedding_model", self._embedding_model)
                outcomes.update(await self._index(list(fresh.values())))
            return [outcomes[document.name] for document in documents]

    async def retrieve(self, query: str, *, limit: int, mode: Mode = "mix") -> list[Document]:
        """At most `limit` passages, most promising first by the cheap ranking."""
        if len(query.strip()) < _SHORTEST_QUERY:
            query = f"what is {query}"
        keywords = self._keywords_of(query)
        parameters = QueryParam(
            mode=mode,
            top_k=_RELATED,
            chunk_top_k=limit + _RESERVE,
            max_entity_tokens=_DESCRIPTION_TOKENS,
            max_relation_tokens=_DESCRIPTION_TOKENS,
            hl_keywords=keywords.high or keywords.low or [query],
            ll_keywords=keywords.low or keywords.high or [query],
            enable_rerank=False,
        )
        try:
            answer = await self._reader.aquery_data(query, parameters)
            chunks = answer.get("data", {}).get("chunks", [])
            names = {unquote(chunk["file_path"]) for chunk in chunks}
            titles = dict(self._database.within("SELECT name, title FROM source WHERE name IN ({})", names))
            candidates = [_document(chunk, titles) for chunk in chunks if chunk["content"].strip()]
            return (await self._ranked(query, candidates))[:limit]
        except ServiceUnavailable:
            raise
        except Exception as error:
            raise ServiceUnavailable("knowledge_base", f"The knowledge base failed: {type(error).__name__}.") from error

    async def similar(self, search: SimilaritySearch) -> list[Document]:
        """Not here yet."""
        raise NotImplementedError

    async def get_relevant_documents(self, query: str, threshold: float = 0.6) -> list[Document]:
        """Passages whose relevance, by the repository's own grader, is above the threshold, best first."""
        candidates = await self.retrieve(query, limit=_GRADED)
        return [document for document in candidates if (document.score or 0.0) > threshold]

    async def delete_document(self, name: str) -> bool:
        """Forget a source and what only it contributed to the graph."""
        async with self.writing():
            identifier = _identifier(name)
            if await self._engine.doc_status.get_by_id(identifier) is None:
                return False
            await self._delete(identifier)
            return True

    async def documents(self) -> AsyncIterator[SourceText]:
        """Every indexed source with its whole text, for building the store anew."""
        for identifier, name, title in self._database.all("SELECT doc_id, name, title FROM source ORDER BY name"):
            stored = await self._engine.full_docs.get_by_id(identifier)
            if stored and stored.get("content"):
                yield SourceText(name=name, text=stored["content"], title=title)

    def replace_by(self, folder: Path) -> None:
        """Take over the store of another folder, for every process that has this one open. Only while `writing`."""
        self._database.replace_by(folder)

    async def status(self) -> KnowledgeStatus:
        """Sizes of the workspace."""
        counts = {name: n for name, n in (await self._engine.doc_status.get_status_counts()).items() if n}

        def count(sql: str) -> int:
            return int(self._database.one(sql)[0])

        return KnowledgeStatus(
            workspace=self._workspace,
            embedding_model=self._embedding_model,
            documents=sum(counts.values()),
            passages=count("SELECT count(*) FROM passage"),
            entities=count("SELECT count(*) FROM node"),
            relations=count("SELECT count(*) FROM edge"),
            by_status=counts,
        )

    async def version(self) -> str:
        """Another one after every change of the store; queries saved by other processes count as such."""
        try:
            return self._database.state()
        except sqlite3.Error as error:
            raise ServiceUnavailable("knowledge_base", f"The store cannot be read: {error}.") from error

    async def close(self) -> None:
        """Flush and close the store."""
        try:
            await self._engine.finalize_storages()
        finally:
            self._database.release()

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Keep every other writer out, of this process and of others."""
        async with self._writing, self._write_lock:
            yield

    async def _unchanged(self, document: SourceText) -> Indexed | None:
        if await self._indexed_text(document.name) != sanitize_text_for_encoding(document.text):
            return None
        row = await self._engine.doc_status.get_by_id(_identifier(document.name))
        return Indexed(document.name, "unchanged", passages=row.get("chunks_count") or 0)

    async def _delete(self, identifier: str) -> None:
        result = await self._engine.adelete_by_doc_id(identifier, delete_llm_cache=False)
        if result.status not in ("success", "not_found"):
            raise ServiceUnavailable("knowledge_base", f"A document could not be removed: {result.message}")
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM source WHERE doc_id = ?", (identifier,))

    async def _index(self, documents: Sequence[SourceText]) -> dict[str, Indexed]:
        identifiers = {document.name: _identifier(document.name) for document in documents}
        outdated = {name: text for name in identifiers if (text := await self._indexed_text(name)) is not None}
        for name in identifiers:
            if await self._engine.doc_status.get_by_id(identifiers[name]) is not None:
                await self._delete(identifiers[name])
        outcomes = await self._enqueue(documents)
        for document in documents:
            outcome, before = outcomes[document.name], outdated.get(document.name)
            if before is not None and outcome.status == "indexed":
                outcomes[document.name] = replace(outcome, status="updated")
            elif before is not None and outcome.status == "failed":
                # Its extractions are cached, so the version that was there comes back without a model.
                await self._delete(identifiers[document.name])
                await self._enqueue([replace(document, text=before)])
                outcomes[document.name] = replace(outcome, reason=f"{outcome.reason} (the previous version is kept)")
        return outcomes

    async def _indexed_text(self, name: str) -> str | None:
        """The text of a source that is completely indexed."""
        identifier = _identifier(name)
        row = await self._engine.doc_status.get_by_id(identifier)
        if row is None or row["status"] != DocStatus.PROCESSED.value:
            return None
        stored = await self._engine.full_docs.get_by_id(identifier)
        return None if stored is None else str(stored["content"])

    async def _enqueue(self, documents: Sequence[SourceText]) -> dict[str, Indexed]:
        identifiers = {document.name: _identifier(document.name) for document in documents}
        with self._database.transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO source VALUES (?, ?, ?)",
                [(identifiers[d.name], d.name, d.title or d.name) for d in documents],
            )
        # A name of our own: LightRAG gives none back when it takes none of the texts.
        track = uuid.uuid4().hex
        await self._engine.apipeline_enqueue_documents(
            [document.text for document in documents],
            ids=list(identifiers.values()),
            file_paths=[quote(document.name, safe="") for document in documents],
            track_id=track,
        )
        await self._engine.apipeline_process_enqueue_documents()
        await self._forget_duplicates(track)
        return {name: await self._outcome(name, identifier) for name, identifier in identifiers.items()}

    async def _forget_duplicates(self, track: str) -> None:
        """LightRAG indexes a text once; that a second source holds the same is no failure to be kept on record."""
        rows = await self._engine.doc_status.get_docs_by_track_id(track)
        duplicates = {key: row for key, row in rows.items() if row.metadata.get("is_duplicate")}
        await self._engine.doc_status.delete(list(duplicates))
        names = [unquote(row.file_path) for row in duplicates.values()]
        with self._database.transaction() as connection:
            connection.executemany("DELETE FROM source WHERE name = ?", [(name,) for name in names])

    async def _outcome(self, name: str, identifier: str) -> Indexed:
        row = await self._engine.doc_status.get_by_id(identifier)
        if row is None:
            return Indexed(name, "unchanged", "another source has the same text")
        if row["status"] == DocStatus.PROCESSED.value:
            return Indexed(name, "indexed", passages=row.get("chunks_count") or 0)
        return Indexed(name, "failed", str(row.get("error_msg") or f"stopped while {row['status']}"))

    async def _ranked(self, query: str, candidates: Sequence[Document]) -> list[Document]:
        scores = await self._ranker.grade(query, candidates)
        graded = [document.graded(score) for document, score in zip(candidates, scores, strict=True)]
        return sorted(graded, key=lambda document: -(document.score or 0.0))


def _identifier(name: str) -> str:
    return "doc-" + hashlib.md5(name.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def _storable(text: str) -> str:
    """The text without what UTF-8 cannot encode, such as half a surrogate pair."""
    return text.encode("utf-8", "replace").decode()


def _document(chunk: dict[str, str], titles: dict[str, str]) -> Document:
    name = unquote(chunk["file_path"])
    return Document(
        id=chunk["chunk_id"],
        content=chunk["content"],
        source="local",
        title=titles.get(name, name),
        url=name if name.startswith(("http://", "https://")) else None,
        metadata={"filename": name},
    )
