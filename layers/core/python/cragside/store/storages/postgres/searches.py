"""The searches in PostgreSQL, as parts that one statement may join."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

from collections.abc import Sequence
from typing import Any

from cragside.domain.verdict import varied
from cragside.ports.embedder import Vectors
from cragside.store.ledger.entries import document_of_passage
from cragside.store.ledger.postgres.words import quoted, words_in
from cragside.store.storages.postgres.near_indexes import index_of_passages, index_of_rows
from cragside.store.storages.ranking import FEW_PASSAGES, PAIR_SHARE, RARE_SHARE, fused, words_of

# The formula of FTS5, by which SQLite ranks: k1 = 1.2, b = 0.75. What `sought` says of words is said here as well.
# `store + 0`: the index of words leads to the store's passages by itself; that of stores would only cost time.
_BM25 = """
WITH known AS (
    SELECT word, asked, word.passages::float8 AS holders, extent.passages::float8 AS passages,
        extent.length::float8 / extent.passages AS mean,
        sum(word.passages) OVER (ORDER BY word.passages, word COLLATE "C") AS together
    FROM unnest({words}::text[], {asked}::text[]) AS each (word, asked)
    JOIN crag.word USING (word) JOIN crag.extent USING (store) WHERE store = {store}),
weighing AS (
    SELECT word, asked, asked::tsquery AS query, mean, together,
        greatest(ln((passages - holders + 0.5) / (holders + 0.5)), 1e-6) AS weight,
        passages <= {few} OR together <= greatest({share} * passages, {few}) OR together - holders < {most} AS rare
    FROM known WHERE passages <= {few} OR holders <= passages / 2 OR together = holders),
chosen AS (
    SELECT string_agg(CASE WHEN rare THEN asked ELSE asked || '&(' || (
        SELECT string_agg(other.asked, '|') FROM weighing AS other WHERE other.together > word.together
            AND other.weight + word.weight >= {pair} * (SELECT min(weight) FROM weighing WHERE rare))
        || ')' END, '|')::tsquery AS query
    FROM weighing AS word)
SELECT seq, (SELECT id FROM crag.searched WHERE searched.seq = best.seq) AS id, score FROM (
    SELECT seq, (
        SELECT sum(weight * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * length / mean)))
        FROM (SELECT weight, mean, coalesce((often ->> word)::float8, 1) AS times
            FROM weighing WHERE words @@ query OFFSET 0) AS held) AS score
    FROM (SELECT seq, words, often, length::float8 FROM crag.searched
        WHERE words @@ (SELECT query FROM chosen) AND store + 0 = {store} OFFSET 0) AS found
    ORDER BY score DESC, seq LIMIT {most}) AS best ORDER BY score DESC, seq"""


HELD = "SELECT word, passages FROM crag.word WHERE store = {store} AND word = ANY({words})"


class Values:
    """The values of a statement, each with the mark by which its text names it."""

    def __init__(self, store: int) -> None:
        self.values: list[Any] = [store]
        self.store = "$1::bigint"

    def mark(self, value: Any, kind: str) -> str:
        """Add a value of a type of PostgreSQL's."""
        self.values.append(value)
        return f"${len(self.values)}::{kind}"

    def vector(self, vector: Vectors) -> str:
        """Add a vector."""
        return self.mark(vector.tolist(), "float4[]")


def near_passages(values: Values, vector: Vectors, least: float, most: int | None) -> str:
    """The nearest passages: `found_seq`, `found` (the id) and `cosine`, nearest first."""
    named = f"'store = ' || {values.store}, {index_of_passages(values.store)}"
    asked = f"{values.vector(vector)}, {values.mark(least, 'float8')}, {values.mark(most, 'integer')}"
    return f"SELECT found_seq, found, cosine FROM crag.nearest('crag.searched', 'seq', 'vector', {named}, {asked})"


def near_rows(
    values: Values,
    namespace: str,
    table: str,
    columns: str,
    workspace: str,
    vector: Vectors,
    least: float,
    most: int,
) -> str:
    """The nearest rows of a table of LightRAG's: these columns and `distance`, nearest first."""
    own = values.mark(workspace, "text")
    named = f"format('workspace = %L', {own}), {index_of_rows(namespace, values.store)}"
    asked = f"{values.vector(vector)}, {values.mark(least, 'float8')}, {values.mark(most, 'integer')}"
    # OFFSET 0 has each row looked up by its key, whatever the planner believes of a workspace that has just grown.
    return (
        f"SELECT {columns}, cosine AS distance"
        f" FROM crag.nearest('{table}', '0::bigint', 'content_vector', {named}, {asked}) CROSS JOIN LATERAL"
        f" (SELECT * FROM {table} WHERE workspace = {own} AND id = found OFFSET 0) AS stored"
        " ORDER BY cosine DESC, found"
    )


def with_words(values: Values, searched: str, most: int) -> str | None:
    """The passages that rank best by words: `seq`, `id` and `score`. None if there are no words."""
    words = list(dict.fromkeys(words_in(" ".join(words_of(searched)))))
    if not words:
        return None
    return _BM25.format(
        words=values.mark(words, "text[]"),
        asked=values.mark([quoted(word, values.values[0]) for word in words], "text[]"),
        store=values.store,
        few=FEW_PASSAGES,
        share=RARE_SHARE,
        pair=PAIR_SHARE,
        most=values.mark(most, "integer"),
    )


def held_words(values: Values, searched: str) -> str:
    """Count the passages that have each word: `word` and `passages`. Words that none has are left out."""
    words = words_in(" ".join(words_of(searched)))
    return HELD.format(store=values.store, words=values.mark(words, "text[]"))


def ranking(near: Sequence[Any], lexical: Sequence[Any], most: int) -> list[tuple[str, float]]:
    """The passages of both searches with their cosines, best first. Rows are (seq, id, cosine or score)."""
    cosine = {row[0]: row[2] for row in near}
    ids = {row[0]: row[1] for row in (*near, *lexical)}
    ranked = fused(cosine, {row[0]: row[2] for row in lexical}) if lexical else list(cosine)
    chosen = varied(ranked, most, lambda seq: document_of_passage(ids[seq]))
    return [(ids[seq], cosine.get(seq, 0.0)) for seq in chosen]
