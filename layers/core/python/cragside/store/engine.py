"""LightRAG in process, set up for one workspace: our storages, our models, no server and no download."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar, overload

from cragside.ports.embedder import Vectors
from cragside.ports.models import LanguageModel
from cragside.store.backends.interface import Storages
from cragside.store.embeddings import CachedEmbedder
from cragside.store.lightrag import (
    STORAGE_ENV_REQUIREMENTS,
    STORAGE_IMPLEMENTATIONS,
    STORAGES,
    EmbeddingFunc,
    LightRAG,
    QueryParam,
    StoragesStatus,
    Tokenizer,
    merge_passages,
    perform_search,
    truncate,
    utils,
    validate_rag_query,
)
from cragside.store.storages import UnusedDocStatusStorage

CHARACTERS_PER_TOKEN = 3


class CharacterTokens:
    """Takes three characters for a token: English text has four to five, so budgets err on the safe side.

    LightRAG counts every entity, relation and passage it considers, and a real tokenizer would read them all.
    """

    def encode(self, content: str) -> "TokenView":
        """Return the text's tokens, without computing any."""
        return TokenView(content)

    def decode(self, tokens: "TokenView") -> str:
        """Return the text that the tokens, or a slice of them, stand for."""
        return tokens.text


class TokenView(Sequence[int]):
    """Shows a text as tokens of three characters: its length and slices are all that LightRAG asks for."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __len__(self) -> int:
        return -(-len(self.text) // CHARACTERS_PER_TOKEN)

    @overload
    def __getitem__(self, index: int) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> "TokenView": ...

    def __getitem__(self, index: "int | slice") -> "int | TokenView":
        if isinstance(index, slice):
            start, stop, _ = index.indices(len(self))
            return TokenView(self.text[start * CHARACTERS_PER_TOKEN : stop * CHARACTERS_PER_TOKEN])
        position = range(len(self))[index] * CHARACTERS_PER_TOKEN
        return hash(self.text[position : position + CHARACTERS_PER_TOKEN])


T = TypeVar("T")

# LightRAG's default, which our storage in SQLite uses: all databases have to find the same passages.
COSINE_FLOOR = 0.2


@dataclass
class Embedding(EmbeddingFunc):
    """Calls a model as LightRAG's `EmbeddingFunc` does, without its queue and its check of the vectors' length.

    LightRAG puts a queue in the place of `func`, and leaves `directly` alone. `CachedEmbedder` checks the length.
    """

    directly: Callable[..., Awaitable[Vectors]] = field(kw_only=True)

    async def __call__(self, *args: Any, **named: Any) -> Vectors:
        """Return a vector for each text."""
        return await self.directly(*args, **named)


class Engine(LightRAG):
    """Runs LightRAG with settings that stay as they are once its storages are open, and without its queues.

    LightRAG deep-copies all its settings for each query. Its queues start a task for each call that may run at once;
    each of these tasks wakes up every second, and goes on after the store is closed.
    """

    _settled: dict[str, Any] | None = None

    def _wrap_llm_role_func(self, role_name: str, raw_func: Callable[..., object], *_: Any) -> Callable[..., object]:
        return raw_func

    def reader(self, edges_per_node: int) -> Self:
        """Return the same LightRAG for queries alone, with a bounded view of the graph."""
        reader = copy(self)
        reader.chunk_entity_relation_graph = self.chunk_entity_relation_graph.bounded(edges_per_node)
        return reader

    def on(self, **storages: Any) -> Self:
        """Return the same LightRAG with other storages in place of some of its own."""
        self._build_global_config()  # the copies of every query share it
        other = copy(self)
        for name, storage in storages.items():
            setattr(other, name, storage)
        return other

    async def choice(self, query: str, parameters: QueryParam, entities: str, relations: str) -> list[str]:
        """Return the ids of the passages that a query picks if it has room for all of them, best first.

        `entities` and `relations` are the texts that it searches for, "" where it searches for none. These are its
        steps up to the choice. The others put a prompt together, which takes as long again.
        """
        query, graph, texts = validate_rag_query(query), self.chunk_entity_relation_graph, self.text_chunks
        beside = self.entities_vdb, self.relationships_vdb
        found = await perform_search(query, entities, relations, graph, *beside, texts, parameters, self.chunks_vdb)
        kept = await truncate(found, parameters, texts.global_config)
        merged = await merge_passages(
            kept["filtered_entities"],
            kept["filtered_relations"],
            found["vector_chunks"],
            query=query,
            knowledge_graph_inst=graph,
            text_chunks_db=texts,
            query_param=parameters,
            chunks_vdb=self.chunks_vdb,
            query_embedding=found["query_embedding"],
        )
        return [passage["chunk_id"] for passage in merged[: parameters.chunk_top_k]]

    def _build_global_config(self) -> dict[str, Any]:
        if self._storages_status is not StoragesStatus.INITIALIZED:
            return super()._build_global_config()  # type: ignore[no-any-return]
        if self._settled is None:
            self._settled = super()._build_global_config()
        return dict(self._settled)


def build_engine(
    place: str,
    *,
    folder: Path,
    workspace: str,
    storages: Storages,
    embedder: CachedEmbedder,
    model: LanguageModel,
    asked_text: Callable[[str], str],
    parallel: int,
) -> Engine:
    """Make a LightRAG for a store, whose storages are not opened yet. It makes `folder`, unless that is there.

    `asked_text` gives the words that full-text search looks for.
    """
    utils.run_in_tokenizer_executor = _at_once
    # Hosts serve calls in turn: without this limit, the calls of questions would wait behind all that is indexed.
    turns = asyncio.Semaphore(parallel)

    async def embed(texts: list[str], context: str = "", **_: Any) -> Vectors:
        return await (embedder.embed_questions(texts) if context == "query" else embedder.embed(texts))

    async def complete(
        prompt: str,
        system_prompt: str | None = None,
        history_messages: Sequence[Mapping[str, str]] | None = None,
        **_: Any,
    ) -> str:
        async with turns:
            return await model.complete(prompt, system=system_prompt, history=history_messages or ())

    return Engine(
        working_dir=str(folder),
        workspace=workspace,
        **registered(storages),
        vector_db_storage_cls_kwargs={"asked_text": asked_text, "store": place},
        embedding_func=Embedding(
            embedding_dim=0, func=embed, max_token_size=None, model_name=embedder.name, directly=embed
        ),
        embedding_batch_num=32,
        llm_model_func=complete,
        llm_model_max_async=parallel,
        max_parallel_insert=8,
        tokenizer=Tokenizer("characters", CharacterTokens()),
        cosine_better_than_threshold=COSINE_FLOOR,
        kg_chunk_pick_method="WEIGHT",
        related_chunk_number=3,
        # What a row remembers of its sources is a courtesy to readers; LightRAG keeps the full lists elsewhere.
        max_source_ids_per_entity=50,
        max_source_ids_per_relation=50,
        max_file_paths=10,
        entity_extract_max_gleaning=0,
        enable_llm_cache=False,
        enable_llm_cache_for_entity_extract=True,
        enable_content_headings=False,
    )


def registered(storages: Storages) -> dict[str, str]:
    """Tell LightRAG the classes of the storages. Return the settings that choose them by their names."""
    roles: dict[str, type] = {
        "kv_storage": storages.values,
        "vector_storage": storages.vectors,
        "graph_storage": storages.graph,
        "doc_status_storage": UnusedDocStatusStorage,
    }
    for role, storage in roles.items():
        name = storage.__name__
        STORAGES[name] = storage.__module__
        STORAGE_ENV_REQUIREMENTS[name] = []
        if name not in (known := STORAGE_IMPLEMENTATIONS[role.upper()]["implementations"]):
            known.append(name)
    return {role: storage.__name__ for role, storage in roles.items()}


async def _at_once(count: Callable[..., T], *args: Any) -> T:
    # Three characters a token are counted faster than a thread can be asked to; LightRAG would ask seven times a query.
    return count(*args)
