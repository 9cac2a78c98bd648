"""LightRAG's vector storage on SQLite, with full-text search beside the vectors of passages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt
import orjson
from lightrag.base import BaseVectorStorage

from cragside.adapters.lightrag.ledger.sqlite.database import Database
from cragside.adapters.lightrag.ledger.sqlite.vectors import has_text
from cragside.adapters.lightrag.storages.sqlite.unused import unused
from cragside.adapters.lightrag.storages.sqlite.vector_index import VectorIndex

# Weights of the min-max normalised rankings; measured best of those tried, see docs/adr/0002.
LEXICAL_WEIGHT = 0.6
COSINE_WEIGHT = 0.4
# Words that more passages than this, and more than this share of them, have are left out of full-text search if there
# are rarer ones.
COMMON_PASSAGES = 200
COMMON_SHARE = 0.05
# Words longer than this cannot be words; they would only make the query string long.
_WORD = re.compile(r"\w{2,40}")
_MAX_WORDS = 32


@final
@dataclass
class SqliteVectorStorage(BaseVectorStorage):
    """Searches see what is committed, by any process. Those of passages rank by BM25 and cosine.

    The ledger writes the rows.
    """

    get_by_id = upsert = delete = delete_entity = delete_entity_relation = get_vectors_by_ids = drop = unused

    async def initialize(self) -> None:
        """Open the workspace's file; vectors are loaded at the first search."""
        self._validate_embedding_func()
        self._db = Database.acquire(self.global_config["working_dir"])
        self._index: VectorIndex | None = None
        self._last_seq = 0
        self._seen = (-1, -1)
        self._has_text = has_text(self.namespace)
        # Stems without function words, for passages and queries alike: common words would make a search read all.
        self._search_text = self.global_config["vector_db_storage_cls_kwargs"].get("search_text", str.lower)

    async def finalize(self) -> None:
        """Give the file back."""
        self._db.release()

    async def index_done_callback(self) -> None:
        """Nothing to do."""

    async def query(self, query: str, top_k: int, query_embedding: list[float] | None = None) -> list[dict[str, Any]]:
        """At most `top_k` rows with `id`, `distance` (the cosine) and their fields, best first."""
        if query_embedding is None:
            query_embedding = (await self.embedding_func([query], context="query"))[0]
        vector = np.asarray(query_embedding, np.float32)
        index = self._current_index(len(vector))
        wide = 3 * top_k if self._has_text else top_k
        cosine = dict(index.search(vector, wide, self.cosine_better_than_threshold))
        lexical = self._full_text(query, wide, len(index)) if self._has_text else {}
        ranked = _fused(cosine, lexical)[:top_k] if lexical else list(cosine)[:top_k]
        rows = {
            seq: (key, value)
            for seq, key, value in self._db.within("SELECT seq, id, value FROM vector WHERE seq IN ({})", ranked)
        }
        return [self._row(*rows[seq], cosine.get(seq, 0.0)) for seq in ranked if seq in rows]

    def nearest(
        self, vector: npt.NDArray[np.float32], threshold: float
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """The numbers (`seq`) of all rows whose cosine is at least `threshold`, nearest first, and the cosines."""
        return self._current_index(len(vector)).nearest(vector, threshold)

    def vectors(self, seqs: Sequence[int]) -> npt.NDArray[np.float32]:
        """The vectors of rows that `nearest` has just named."""
        return self._index.vectors(seqs) if self._index else np.empty((0, 0), np.float32)

    def ids_of(self, seqs: Sequence[int]) -> dict[int, str]:
        """The ids of rows by their numbers."""
        return dict(self._db.within("SELECT seq, id FROM vector WHERE seq IN ({})", seqs))

    async def embedded(self, texts: list[str]) -> np.ndarray[Any, Any]:
        """A row for each text, embedded in batches."""
        size = int(self.global_config.get("embedding_batch_num", 32))
        parts = [await self.embedding_func(texts[i : i + size]) for i in range(0, len(texts), size)]
        return np.concatenate([np.asarray(part, np.float32) for part in parts])

    async def get_by_ids(self, ids: list[str]) -> list[dict[str, Any] | None]:
        """Rows in the order of the ids, None for the missing."""
        found = {key: {**orjson.loads(value), "id": key} for key, value in self._rows("id, value", ids)}
        return [found.get(key) for key in ids]

    def _rows(self, columns: str, ids: list[str]) -> list[Any]:
        sql = f"SELECT {columns} FROM vector WHERE namespace = ? AND id IN ({{}})"  # noqa: S608 (our own column names)
        return list(self._db.within(sql, ids, [self.namespace]))

    def _current_index(self, dimensions: int) -> VectorIndex:
        """The index with everything that any process has committed."""
        seen = self._db.data_version(), self._db.vector_writes[self.namespace]
        if self._index is not None and seen == self._seen:
            return self._index
        if self._index is None:
            self._index = VectorIndex(dimensions)
        fresh = self._db.all(
            "SELECT seq, vector FROM vector WHERE namespace = ? AND seq > ? ORDER BY seq",
            (self.namespace, self._last_seq),
        )
        if fresh:
            matrix = np.frombuffer(bytearray().join(row[1] for row in fresh), np.float32).reshape(len(fresh), -1)
            self._index.add([row[0] for row in fresh], matrix)
            self._last_seq = fresh[-1][0]
        count = self._db.one("SELECT count(*) FROM vector WHERE namespace = ?", (self.namespace,))[0]
        if count != len(self._index):
            alive = {row[0] for row in self._db.all("SELECT seq FROM vector WHERE namespace = ?", (self.namespace,))}
            self._index.remove(list(self._index.keys() - alive))
        self._seen = seen
        return self._index

    def _full_text(self, query: str, limit: int, passages: int) -> dict[int, float]:
        words = dict.fromkeys(_WORD.findall(self._search_text(query)))
        if not words:
            return {}
        match = " OR ".join(f'"{word}"' for word in self._telling(list(words)[:_MAX_WORDS], passages))
        rows = self._db.all(
            "SELECT rowid, -rank FROM passage WHERE passage MATCH ? ORDER BY rank LIMIT ?", (match, limit)
        )
        return {row[0]: row[1] for row in rows}

    def _telling(self, words: list[str], passages: int) -> list[str]:
        """The words without those that many passages have, unless all are such: they cost most and rank least."""
        if passages <= COMMON_PASSAGES:
            return words
        rows = self._db.within("SELECT term, doc FROM passage_term WHERE term IN ({})", words)
        spread = {word: count for word, count in rows if count}
        common = max(COMMON_SHARE * passages, COMMON_PASSAGES, min(spread.values(), default=0))
        return [word for word in words if spread.get(word, 0) <= common]

    @staticmethod
    def _row(key: str, value: str, cosine: float) -> dict[str, Any]:
        return {**orjson.loads(value), "id": key, "distance": cosine}


def _fused(cosine: dict[int, float], lexical: dict[int, float]) -> list[int]:
    """Keys of both rankings, best weighted sum of their normalised scores first."""
    by_cosine, by_words = _normalised(cosine), _normalised(lexical)
    score = {
        key: COSINE_WEIGHT * by_cosine.get(key, 0.0) + LEXICAL_WEIGHT * by_words.get(key, 0.0)
        for key in {**cosine, **lexical}
    }
    return sorted(score, key=lambda key: (-score[key], key))


def _normalised(scores: dict[int, float]) -> dict[int, float]:
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    return {key: (value - low) / (high - low) if high > low else 1.0 for key, value in scores.items()}
