"""LightRAG's vector storage on SQLite, with full-text search beside the vectors of passages."""

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt
import orjson
from typing_extensions import override

from cragside.adapters.lightrag.ledger.entries import document_of_passage
from cragside.adapters.lightrag.ledger.sqlite.database import Database
from cragside.adapters.lightrag.ledger.sqlite.vectors import has_text
from cragside.adapters.lightrag.storages.interface import VectorStorage
from cragside.adapters.lightrag.storages.ranking import FEW_PASSAGES, MOST_WORDS, fused, sought, words_of
from cragside.adapters.lightrag.storages.sqlite.filtering import candidates
from cragside.adapters.lightrag.vector_index import VectorIndex
from cragside.domain.query import Filter
from cragside.domain.verdict import varied
from cragside.ports.embedder import Vectors

# As many of the nearest are tried one by one before SQL tells which passages the filter could let through at all: it
# reads the whole catalogue for that.
_TRIED_FIRST = 200
# So many words take less than a megabyte.
_MOST_COUNTS = 5_000
# Terms that begin with as many equal letters are read together, if more are looked for.
_START, _MANY = 3, 20
_BEST = "SELECT rowid, -rank FROM passage WHERE passage MATCH ? ORDER BY rank LIMIT ?"
# With `ORDER BY rank` or without `+`, FTS5 would rank the passages that are not chosen too.
_BEST_OF = """SELECT rowid, -bm25(passage) AS score FROM passage
    WHERE passage MATCH ? AND +rowid IN (SELECT rowid FROM passage WHERE passage MATCH ?)
    ORDER BY score DESC, rowid LIMIT ?"""


@final
@dataclass
class SqliteVectorStorage(VectorStorage):
    """Vectors are in memory for searches, and follow what any process commits."""

    @override
    async def initialize(self) -> None:
        self._validate_embedding_func()
        self._db = Database.acquire(self.global_config["working_dir"])
        self._index: VectorIndex | None = None
        self._last_seq = 0
        self._seen = (-1, -1)
        self._counts: dict[str, int] = {}
        self._counted_at = (-1, -1)
        self._has_text = has_text(self.namespace)
        # Stems without function words, for passages and queries alike: common words would make a search read all.
        self._asked_text = self.global_config["vector_db_storage_cls_kwargs"].get("asked_text", str.lower)

    @override
    async def finalize(self) -> None:
        self._db.release()

    @override
    async def query(self, query: str, top_k: int, query_embedding: list[float] | None = None) -> list[dict[str, Any]]:
        if query_embedding is None:
            query_embedding = (await self.embedding_func([query], context="query"))[0]
        vector = np.asarray(query_embedding, np.float32)
        index = self._current_index(len(vector))
        wide = 3 * top_k if self._has_text else top_k
        cosine = dict(index.search(vector, wide, self.cosine_better_than_threshold))
        lexical = self._full_text(query, wide, len(index)) if self._has_text else {}
        ranked = fused(cosine, lexical) if lexical else list(cosine)
        if self._has_text:
            ids = dict(self._db.within("SELECT seq, id FROM vector WHERE seq IN ({})", ranked))
            ranked = varied(ranked, top_k, lambda seq: document_of_passage(ids.get(seq, "")))
        rows = {
            seq: (key, value)
            for seq, key, value in self._db.within("SELECT seq, id, value FROM vector WHERE seq IN ({})", ranked)
        }
        return [self._row(*rows[seq], cosine.get(seq, 0.0)) for seq in ranked if seq in rows]

    @override
    async def nearest(
        self, question: Vectors, *, least: float, wanted: Filter, size: int
    ) -> AsyncIterator[list[tuple[str, float]]]:
        seqs, cosines = self._current_index(len(question)).nearest(question, least)
        first = seqs[:_TRIED_FIRST], cosines[:_TRIED_FIRST]
        for batch in self._batches(*first, size):
            yield batch
        if len(seqs) > _TRIED_FIRST:
            seqs, cosines = seqs[_TRIED_FIRST:], cosines[_TRIED_FIRST:]
            if (possible := candidates(self._db, wanted)) is not None:
                chosen = np.isin(seqs, possible)
                seqs, cosines = seqs[chosen], cosines[chosen]
            for batch in self._batches(seqs, cosines, size):
                yield batch

    @override
    async def worded(self, query: str, limit: int) -> list[str]:
        passages = self._db.one("SELECT count(*) FROM vector WHERE namespace = ?", (self.namespace,))[0]
        seqs = list(self._full_text(query, limit, passages))
        ids = dict(self._db.within("SELECT seq, id FROM vector WHERE seq IN ({})", seqs))
        return [ids[seq] for seq in seqs if seq in ids]

    @override
    async def held(self, terms: Collection[str]) -> dict[str, int]:
        if len(terms) <= MOST_WORDS:
            return self._spread(list(terms))
        # Most of them begin alike. To read all such terms of the store takes less than to look for each.
        begun: defaultdict[str, list[str]] = defaultdict(list)
        for term in terms:
            begun[term[:_START]].append(term)
        alone = [term for some in begun.values() if len(some) <= _MANY for term in some]
        found = dict(self._db.within("SELECT term, doc FROM passage_term WHERE term IN ({})", alone))
        for start, some in begun.items():
            if len(some) > _MANY:
                after = start[:-1] + chr(ord(start[-1]) + 1)
                rows = self._db.all("SELECT term, doc FROM passage_term WHERE term >= ? AND term < ?", (start, after))
                found |= {term: count for term, count in rows if term in terms}
        return found

    @override
    async def get_vectors_by_ids(self, ids: list[str]) -> dict[str, Vectors]:
        return {key: np.frombuffer(vector, np.float32) for key, vector in self._rows("id, vector", ids)}

    def _batches(self, seqs: npt.NDArray[np.int64], cosines: Vectors, size: int) -> Iterator[list[tuple[str, float]]]:
        for start in range(0, len(seqs), size):
            batch = seqs[start : start + size].tolist()
            ids = dict(self._db.within("SELECT seq, id FROM vector WHERE seq IN ({})", batch))
            pairs = zip(batch, cosines[start : start + size].tolist(), strict=True)
            yield [(ids[seq], cosine) for seq, cosine in pairs if seq in ids]

    @override
    async def get_by_ids(self, ids: list[str]) -> list[dict[str, Any] | None]:
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
        if not (words := words_of(self._asked_text(query))):
            return {}
        spread = self._spread(words) if passages > FEW_PASSAGES else {}
        words, rare, pairs = sought(words, spread, passages, limit)
        if len(rare) == len(words):
            rows = self._db.all(_BEST, (_any_of(words), limit))
        else:
            chosen = [_any_of(rare), *(f'("{word}" AND ({_any_of(others)}))' for word, others in pairs)]
            rows = self._db.all(_BEST_OF, (_any_of(words), " OR ".join(chosen), limit))
        return dict(rows)

    def _spread(self, words: list[str]) -> dict[str, int]:
        """How many passages have each word. To count a common one takes FTS5 longer than to find most questions."""
        written = self._db.data_version(), self._db.vector_writes[self.namespace]
        if written != self._counted_at or len(self._counts) > _MOST_COUNTS:
            self._counts, self._counted_at = {}, written
        if strange := [word for word in words if word not in self._counts]:
            rows = self._db.within("SELECT term, doc FROM passage_term WHERE term IN ({})", strange)
            self._counts |= dict.fromkeys(strange, 0) | dict(rows)
        return {word: count for word in words if (count := self._counts[word])}

    @staticmethod
    def _row(key: str, value: str, cosine: float) -> dict[str, Any]:
        return {**orjson.loads(value), "id": key, "distance": cosine}


def _any_of(words: Sequence[str]) -> str:
    return " OR ".join(f'"{word}"' for word in words)
