"""LightRAG's vector storage on SQLite, with full-text search and filters beside the vectors of passages.

Nearest neighbours are found in memory: exactly in small sets, by signs first in large ones.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, final

import numpy as np
import numpy.typing as npt
import orjson
from typing_extensions import override

from cragside.domain.query import Condition, Filter
from cragside.domain.verdict import varied
from cragside.ports.embedder import Vectors
from cragside.store.chunking import document_of_passage
from cragside.store.ranking import FEW_PASSAGES, MOST_WORDS, fused, sought, words_of
from cragside.store.sqlite.database import Database
from cragside.store.sqlite.driver import has_text
from cragside.store.storages import Found, Rows, Search, VectorStorage

_CANDIDATES = """
SELECT vector.seq FROM document JOIN chunk USING (version)
JOIN part ON part.version = chunk.version AND part.number = chunk.part
JOIN vector ON vector.namespace = 'chunks' AND vector.id = chunk.id
WHERE document.state <> 'gone' AND {}
"""
_METADATA = "document.metadata"
# Where the strings of a payload's fields are kept; those of other fields are in the metadata.
_COLUMNS = {
    "source": "document.name",
    "filename": "document.name",
    "title": "document.title",
    "fileType": "document.file_type",
    "docType": "document.doc_type",
    "documentId": "document.id",
    "uploadTimestamp": "document.created_at",
    "tier1": "document.tier1",
    "tier2": "chunk.tier2",
    "tier3": "part.tier3",
    "section": "chunk.section",
    "sections": "chunk.section",
    "enrichmentStatus": "part.enrichment",
}
_JSON = {_METADATA, "document.tier1", "chunk.tier2", "part.tier3"}
# No column holds their strings, or they have none.
_ELSEWHERE = {"text", "bytes", "chunkIndex", "totalChunks", "pageNumber"}


def candidates(database: Database, wanted: Filter) -> npt.NDArray[np.int64] | None:
    """The numbers of the vectors whose passages may meet the conditions, and of a few that do not.

    None when SQL cannot tell.
    """
    clauses: list[str] = []
    values: list[str] = []
    for clause, value in filter(None, map(_clause, wanted.must)):
        clauses.append(clause)
        values.append(value)
    if not clauses:
        return None
    rows = database.all(_CANDIDATES.format(" AND ".join(clauses)), values)
    return np.fromiter((row[0] for row in rows), np.int64, len(rows))


def _clause(condition: Condition) -> tuple[str, str] | None:
    """SQL for a condition on a string: true wherever the string is, in the field or, within JSON, in another one."""
    root = condition.key.split(".")[0]
    if not isinstance(condition.value, str) or root in _ELSEWHERE:
        return None
    in_any_case = condition.how == "contains"
    if in_any_case and not condition.value.isascii():
        return None  # `lower()` of SQLite knows the 26 letters alone
    column = _COLUMNS.get(root, _METADATA)
    value = condition.value.lower() if in_any_case else condition.value
    wanted = json.dumps(value)[1:-1] if column in _JSON else value
    return (f"instr(lower({column}), ?)" if in_any_case else f"instr({column}, ?)"), wanted


Number = TypeVar("Number", bound=np.generic)

# Below this many vectors one exact matrix product is cheaper than the two-step search.
EXACT_BELOW = 6_000
# Candidates of the first step that are scored exactly, for each result wanted, and at least.
OVERSAMPLING = 12
MIN_CANDIDATES = 400
# As many of the nearest are tried one by one before SQL tells which passages the filter could let through at all: it
# reads the whole catalogue for that.
_TRIED_FIRST = 200
# The new vectors of a namespace, by their numbers. For those of passages and entities, which have no target, the index
# has them in this order. Relations are most of the table, which is read in its own order: to sort vectors, or to look
# each one up, costs more than the rows between them.
_NEXT = """SELECT seq, vector FROM vector INDEXED BY vector_by_target
    WHERE namespace = ? AND target IS NULL AND seq > ? ORDER BY seq LIMIT ?"""
_NEXT_PAIRS = "SELECT seq, vector FROM vector NOT INDEXED WHERE namespace = ? AND seq > ? ORDER BY seq LIMIT ?"
_COUNT = "SELECT count(*) FROM vector WHERE namespace = ?"
# They take a few milliseconds. Then other tasks have their turn.
_LOADED_AT_ONCE = 500
# So many vectors of removed rows do not matter.
_FEW_REMOVED = 1_000
# So many words take less than a megabyte.
_MOST_COUNTS = 5_000
# Terms that begin with as many equal letters are read together, if more are looked for.
_START, _MANY = 3, 20
_BEST = "SELECT rowid, -rank FROM passage WHERE passage MATCH ? ORDER BY rank LIMIT ?"
# With `ORDER BY rank` or without `+`, FTS5 would rank the passages that are not chosen too.
_BEST_OF = """SELECT rowid, -bm25(passage) AS score FROM passage
    WHERE passage MATCH ? AND +rowid IN (SELECT rowid FROM passage WHERE passage MATCH ?)
    ORDER BY score DESC, rowid LIMIT ?"""


class VectorIndex:
    """Unit vectors with integer keys, searched by cosine.

    Large sets are searched in two steps: the Hamming distance between the signs of the dimensions (32 bytes a vector of
    256 dimensions instead of 1,024) selects candidates, whose cosine is then computed exactly. It costs a fifth of
    the full product at 20,000 vectors and an eleventh at 140,000.
    """

    def __init__(self, dimensions: int) -> None:
        self._words = -(-dimensions // 64)
        self._keys = np.empty(0, np.int64)
        self._vectors = np.empty((0, dimensions), np.float32)
        self._signs = np.empty((0, self._words), np.uint64, order="F")
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def keys(self) -> npt.NDArray[np.int64]:
        """All keys in the index, in any order."""
        return self._keys[: self._size]

    def reserve(self, capacity: int) -> None:
        """Make room for as many vectors and a quarter more, so that adding them copies none a second time.

        Room takes no memory until it is used.
        """
        if capacity > len(self._keys):
            self._grow(capacity + capacity // 4)

    def add(self, keys: Sequence[int], vectors: npt.NDArray[np.float32]) -> None:
        """Add vectors under new keys; shape (len(keys), dimensions)."""
        needed = self._size + len(keys)
        if needed > len(self._keys):
            self._grow(needed + needed // 4)
        rows = slice(self._size, needed)
        self._keys[rows] = keys
        self._vectors[rows] = vectors
        self._signs[rows] = self._signs_of(vectors)
        self._size = needed

    def remove(self, keys: Sequence[int] | npt.NDArray[np.int64]) -> None:
        """Forget keys; unknown ones are no error. The last vectors move into the gaps."""
        gone = np.isin(self.keys(), keys)
        kept = self._size - int(np.count_nonzero(gone))
        gaps, moved = np.flatnonzero(gone[:kept]), kept + np.flatnonzero(~gone[kept:])
        for array in (self._keys, self._vectors, self._signs):
            array[gaps] = array[moved]
        self._size = kept

    def search(self, query: npt.NDArray[np.float32], limit: int, threshold: float) -> list[tuple[int, float]]:
        """At most `limit` pairs of key and cosine of at least `threshold`, nearest first."""
        if self._size == 0 or limit <= 0:
            return []
        if self._size <= EXACT_BELOW:
            rows = None
            scores = self._vectors[: self._size] @ query
        else:
            rows = self._candidates(query, max(limit * OVERSAMPLING, MIN_CANDIDATES))
            scores = self._vectors[rows] @ query
        best = _largest(scores, limit)
        best = best[scores[best] >= threshold]
        keys = self._keys[best if rows is None else rows[best]]
        return list(zip(keys.tolist(), scores[best].tolist(), strict=True))

    def nearest(
        self, query: npt.NDArray[np.float32], threshold: float
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """The keys of all vectors whose cosine is at least `threshold`, and the cosines: all exact.

        The nearest come first, of equal ones that with the smallest key.
        """
        scores = self._vectors[: self._size] @ query
        rows = np.flatnonzero(scores >= threshold)
        rows = rows[np.lexsort((self._keys[rows], -scores[rows]))]
        return self._keys[rows], scores[rows]

    def _candidates(self, query: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.intp]:
        signs = self._signs_of(query[None, :])[0]
        distance = np.bitwise_count(self._signs[: self._size, 0] ^ signs[0]).astype(np.uint16)
        for word in range(1, self._words):
            distance += np.bitwise_count(self._signs[: self._size, word] ^ signs[word])
        # The distance has few values, so a histogram finds the cut without sorting.
        cut = int(np.searchsorted(np.cumsum(np.bincount(distance)), min(count, self._size)))
        return np.flatnonzero(distance <= cut)

    def _signs_of(self, vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.uint64]:
        bits = np.packbits(vectors > 0, axis=1)
        padded = np.zeros((len(vectors), self._words * 8), np.uint8)
        padded[:, : bits.shape[1]] = bits
        return padded.view(np.uint64)

    def _grow(self, capacity: int) -> None:
        def grown(array: npt.NDArray[Number]) -> npt.NDArray[Number]:
            order: Literal["F", "C"] = "F" if array is self._signs else "C"
            larger = np.empty((capacity, *array.shape[1:]), array.dtype, order)
            larger[: self._size] = array[: self._size]
            return larger

        self._keys, self._vectors, self._signs = grown(self._keys), grown(self._vectors), grown(self._signs)


def _largest(scores: npt.NDArray[np.float32], limit: int) -> npt.NDArray[np.intp]:
    top = np.argpartition(scores, -limit)[-limit:] if limit < len(scores) else np.arange(len(scores))
    return top[np.argsort(-scores[top], kind="stable")]


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
        # With more vectors than this, those of removed rows are looked for.
        self._most = 0
        self._passages: int | None = None
        self._counts: dict[str, int] = {}
        self._counted_at = (-1, -1)
        self._has_text = has_text(self.namespace)
        self._next = _NEXT_PAIRS if self.namespace.endswith("relationships") else _NEXT
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
        index = await self._current_index(len(vector))
        if not self._has_text:
            return self._near(index, vector, top_k)
        ranked = self._ranked(index, query, top_k, vector)
        rows = self._values(seq for seq, *_ in ranked)
        return [self._row(*rows[seq], cosine) for seq, _, cosine in ranked if seq in rows]

    @override
    async def find(self, search: Search, *beside: Any) -> Found:
        entities, relations, graph = beside
        near: Rows = []
        related: Rows = []
        passages: list[tuple[str, float]] = []
        by_entities, by_relations, by_passages = [
            None if text is None else await storage._current_index(len(search.vector(text)))
            for storage, text in ((entities, search.entities), (relations, search.relations), (self, search.passages))
        ]
        # One transaction is begun and ended, not two dozen. Nothing in it waits.
        with self._db.snapshot():
            if search.entities:
                near = entities._near(by_entities, search.vector(search.entities), search.related)
            if search.relations:
                related = relations._near(by_relations, search.vector(search.relations), search.related)
            if search.passages is not None and by_passages is not None:
                vector = search.vector(search.passages)
                ranked = self._ranked(by_passages, search.passages, search.most, vector)
                passages = [(key, cosine) for _, key, cosine in ranked]
            found = Found(near, related, passages, None)
            return found._replace(expansion=await graph.expand(found.names, found.ends))

    def _near(self, index: VectorIndex, vector: Vectors, most: int) -> Rows:
        cosine, _ = self._nearest_rows(index, vector, most)
        rows = self._values(cosine)
        return [self._row(*rows[seq], near) for seq, near in cosine.items() if seq in rows]

    def _ranked(self, index: VectorIndex, query: str, most: int, vector: Vectors) -> list[tuple[int, str, float]]:
        """Return the numbers of the passages that rank best by words and vectors, with their ids and cosines."""
        wide = 3 * most
        cosine, ids = self._nearest_rows(index, vector, wide)
        lexical = self._full_text(query, wide)
        ranked = fused(cosine, lexical) if lexical else list(cosine)
        ids |= self._ids(number for number in lexical if number not in ids)
        chosen = varied(ranked, most, lambda seq: document_of_passage(ids.get(seq, "")))
        return [(seq, ids[seq], cosine.get(seq, 0.0)) for seq in chosen if seq in ids]

    def _values(self, seqs: Iterable[int]) -> dict[int, tuple[str, str]]:
        rows = self._db.within("SELECT seq, id, value FROM vector WHERE seq IN ({})", seqs)
        return {seq: (key, value) for seq, key, value in rows}

    @override
    async def nearest(
        self, question: Vectors, *, least: float, wanted: Filter, size: int
    ) -> AsyncIterator[list[tuple[str, float]]]:
        seqs, cosines = (await self._current_index(len(question))).nearest(question, least)
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
        seqs = list(self._full_text(query, limit))
        ids = self._ids(seqs)
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
            ids = self._ids(batch)
            pairs = zip(batch, cosines[start : start + size].tolist(), strict=True)
            yield [(ids[seq], cosine) for seq, cosine in pairs if seq in ids]

    @override
    async def get_by_ids(self, ids: list[str]) -> list[dict[str, Any] | None]:
        found = {key: {**orjson.loads(value), "id": key} for key, value in self._rows("id, value", ids)}
        return [found.get(key) for key in ids]

    def _rows(self, columns: str, ids: list[str]) -> list[Any]:
        sql = f"SELECT {columns} FROM vector WHERE namespace = ? AND id IN ({{}})"  # noqa: S608 (our own column names)
        return list(self._db.within(sql, ids, [self.namespace]))

    async def _current_index(self, dimensions: int) -> VectorIndex:
        """Return the index with all that any process has committed. Rows that were removed may still have vectors."""
        if self._index is None:
            self._index = VectorIndex(dimensions)
            self._index.reserve(self._count())
        while not self._catch_up(self._index):  # noqa: ASYNC110 (each turn does a part of the work)
            await asyncio.sleep(0)
        return self._index

    def _catch_up(self, index: VectorIndex) -> bool:
        """Add the vectors of the next rows. Returns True if there are no more."""
        written = self._written()
        if written == self._seen:
            return True
        if rows := self._db.all(self._next, (self.namespace, self._last_seq, _LOADED_AT_ONCE)):
            matrix = np.frombuffer(b"".join([row[1] for row in rows]), np.float32).reshape(len(rows), -1)
            index.add([row[0] for row in rows], matrix)
            self._last_seq = rows[-1][0]
        if len(rows) == _LOADED_AT_ONCE:
            return False
        if len(index) > self._most:
            self._forget_removed(index)
        self._seen = written
        return True

    def _forget_removed(self, index: VectorIndex) -> None:
        """Remove the vectors of removed rows. To find them takes long in a large store."""
        if self._count() != len(index):
            alive = self._db.all("SELECT seq FROM vector WHERE namespace = ?", (self.namespace,))
            numbers = np.fromiter((row[0] for row in alive), np.int64, len(alive))
            index.remove(np.setdiff1d(index.keys(), numbers, assume_unique=True))
        self._most = 2 * len(index) + _FEW_REMOVED

    def _nearest_rows(self, index: VectorIndex, vector: Vectors, limit: int) -> tuple[dict[int, float], dict[int, str]]:
        """Return the numbers of the nearest rows with their cosines, and their ids.

        Vectors of removed rows that it comes upon leave the index.
        """
        looked = limit
        while True:
            found = index.search(vector, looked, self.cosine_better_than_threshold)
            ids = self._ids(number for number, _ in found)
            if len(ids) == len(found):
                return dict(found[:limit]), ids
            index.remove([number for number, _ in found if number not in ids])
            looked *= 2

    def _ids(self, numbers: Iterable[int]) -> dict[int, str]:
        return dict(self._db.within("SELECT seq, id FROM vector WHERE seq IN ({})", numbers))

    def _count(self) -> int:
        return int(self._db.one(_COUNT, (self.namespace,))[0])

    def _written(self) -> tuple[int, int]:
        """Changes with each write of any connection."""
        return self._db.data_version(), self._db.vector_writes[self.namespace]

    def _full_text(self, query: str, limit: int) -> dict[int, float]:
        if not (words := words_of(self._asked_text(query))):
            return {}
        self._forget_old_counts()
        passages = self._passages = self._count() if self._passages is None else self._passages
        spread = self._spread(words) if passages > FEW_PASSAGES else {}
        words, rare, pairs = sought(words, spread, passages, limit)
        if len(rare) == len(words):
            rows = self._db.all(_BEST, (_any_of(words), limit))
        else:
            chosen = [_any_of(rare), *(f'("{word}" AND ({_any_of(others)}))' for word, others in pairs)]
            rows = self._db.all(_BEST_OF, (_any_of(words), " OR ".join(chosen), limit))
        return dict(rows)

    def _spread(self, words: list[str]) -> dict[str, int]:
        """Count the passages that have each word. FTS5 counts a common word slower than it answers most questions."""
        self._forget_old_counts()
        if strange := [word for word in words if word not in self._counts]:
            rows = self._db.within("SELECT term, doc FROM passage_term WHERE term IN ({})", strange)
            self._counts |= dict.fromkeys(strange, 0) | dict(rows)
        return {word: count for word in words if (count := self._counts[word])}

    def _forget_old_counts(self) -> None:
        written = self._written()
        if written != self._counted_at or len(self._counts) > _MOST_COUNTS:
            self._passages, self._counts, self._counted_at = None, {}, written

    @staticmethod
    def _row(key: str, value: str, cosine: float) -> dict[str, Any]:
        return {**orjson.loads(value), "id": key, "distance": cosine}


def _any_of(words: Sequence[str]) -> str:
    return " OR ".join(f'"{word}"' for word in words)
