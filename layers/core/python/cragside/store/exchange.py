"""Contents of a store, as plain rows that every database can write out and take in.

Rows come in the order of the kinds below, and those of a kind in the order in which they were stored.
"""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, get_args

from cragside.store.driver import Driver

SearchText = Callable[[str], str]


class FactsRow(NamedTuple):
    """The store itself: the model of its vectors and their length, None without vectors."""

    embedding_model: str | None
    dimensions: int | None
    untidy: bool


class DocumentRow(NamedTuple):
    """A version of a document. `version` is a number that other rows refer to; the target may give another one."""

    version: int
    id: str
    content_hash: str
    state: str
    name: str
    title: str
    file_type: str
    doc_type: str
    size: int
    characters: int
    created_at: str
    updated_at: str
    track: str
    enrich: bool
    tier1: str
    metadata: str
    marks: str
    text: str


class OriginRow(NamedTuple):
    """The source of a document."""

    document_id: str
    source: str


class PartRow(NamedTuple):
    """A part of a version."""

    version: int
    number: int
    key: str
    first: int
    last: int
    embedded: bool
    enrichment: str
    error: str
    tier3: str | None
    enriched_at: str | None


class PassageRow(NamedTuple):
    """A passage. `text` is its JSON in LightRAG's storage of texts, None for a text that is gone."""

    id: str
    version: int
    part: int
    number: int
    page: int | None
    section: str
    tier2: str | None
    text: str | None


class ValueRow(NamedTuple):
    """JSON in another of LightRAG's key-value storages."""

    namespace: str
    id: str
    value: str


class NodeRow(NamedTuple):
    """An entity, as JSON."""

    id: str
    value: str


class EdgeRow(NamedTuple):
    """A relation, as JSON. Its ends are in alphabetical order."""

    source: str
    target: str
    value: str


class VectorRow(NamedTuple):
    """A row of a vector storage, as JSON, with the bytes of its float32 vector.

    `searched` is what full-text search sees of a passage, and None for other rows.
    """

    namespace: str
    id: str
    value: str
    vector: bytes
    searched: str | None


class MentionRow(NamedTuple):
    """A passage that mentions an entity or a relation."""

    kind: str
    name: str
    passage: str


class EmbeddingRow(NamedTuple):
    """A vector in the cache, by the SHA-256 of its text."""

    model: str
    text_hash: bytes
    document_id: str
    vector: bytes


class QueryRow(NamedTuple):
    """A recorded query."""

    id: str
    text: str
    created_at: str


Row = (
    FactsRow
    | DocumentRow
    | OriginRow
    | PartRow
    | PassageRow
    | ValueRow
    | NodeRow
    | EdgeRow
    | VectorRow
    | MentionRow
    | EmbeddingRow
    | QueryRow
)
# Some rows of one kind; never empty.
Batch = Sequence[Row]
Batches = AsyncGenerator[Batch, None]
# Gives the results of a statement, some at a time.
Fetch = Callable[[str, int], AsyncIterator[Sequence[Any]]]
Write = Callable[[Any], Awaitable[None]]

# The ledger's tables that all databases have alike, with the order of their rows. The columns are the fields of a row.
TABLES: dict[type[Row], tuple[str, str]] = {
    DocumentRow: ("document", " ORDER BY version"),
    OriginRow: ("origin", ""),
    PartRow: ("part", " ORDER BY version, number"),
    MentionRow: ("mention", ""),
    EmbeddingRow: ("embedding", " ORDER BY seq"),
    QueryRow: ("query", " ORDER BY seq"),
}
# The columns of a passage but for its text, which each database has in a way of its own.
PASSAGE = PassageRow._fields[:-1]
# The last versions, latest first.
_NUMBERS = "SELECT version FROM crag.document WHERE store = $1 ORDER BY version DESC LIMIT $2"


class Read(NamedTuple):
    """Reads rows of a kind by a statement. `make` makes a row of a result; by default, its columns are the fields."""

    kind: type[Row]
    sql: str
    make: Callable[..., Row] | None = None


def rows_at_once(kind: type[Row]) -> int:
    """Return the number of rows of a kind that are in memory at a time. A document's row has its whole text."""
    return 8 if kind is DocumentRow else 500


async def inserted(batches: Batches, more: AsyncIterator[Batch], before: tuple[type[Row], ...]) -> Batches:
    """Yield batches with others ahead of the first one of these kinds, or at the end."""
    yielded = False
    async for batch in batches:
        if not yielded and isinstance(batch[0], before):
            yielded = True
            async for rows in more:
                yield rows
        yield batch
    if not yielded:
        async for rows in more:
            yield rows


async def read_rows(fetch: Fetch, own: Iterable[Read]) -> Batches:
    """Read all rows of a store. `own` reads those that are not in the tables that all databases have alike."""
    reads = [Read(kind, select(kind)) for kind in TABLES]
    for kind, sql, make in sorted((*reads, *own), key=lambda read: get_args(Row).index(read.kind)):
        made = make or _typed(kind)
        async for found in fetch(sql, rows_at_once(kind)):
            yield [made(*each) for each in found]


class Writing:
    """Writes rows into an empty store, within transactions of the caller's."""

    def __init__(self, driver: Driver, own: Mapping[type[Row], Write]) -> None:
        """`own` writes the rows that are not in the tables that all databases have alike."""
        self._driver = driver
        self._own = own
        # This store's numbers of versions, by those of the other one.
        self._versions: dict[int, int] = {}

    async def write(self, batch: Any) -> None:
        """Write rows of one kind."""
        kind = type(batch[0])
        if kind in (PartRow, PassageRow):
            batch = [row._replace(version=self._versions[row.version]) for row in batch]
        if own := self._own.get(kind):
            await own(batch)
        elif kind is DocumentRow:
            await self._driver.many(insert("document", DocumentRow._fields[1:]), [row[1:] for row in batch])
            numbers = await self._driver.all(_NUMBERS, len(batch))
            self._versions |= {row.version: number for row, (number,) in zip(reversed(batch), numbers, strict=True)}
        else:
            await self._driver.many(insert(TABLES[kind][0], kind._fields), batch)


def insert(table: str, columns: Sequence[str]) -> str:
    """Return the statement by which `Driver.many` adds rows to one of the ledger's tables."""
    names, values = ", ".join(columns), ", ".join(f"${number}" for number in range(2, 2 + len(columns)))
    if table == "part":  # its store is that of its version
        return f"INSERT INTO crag.part ({names}) SELECT {values} WHERE $1::bigint IS NOT NULL"
    return f"INSERT INTO crag.{table} (store, {names}) VALUES ($1, {values})"


def select(kind: type[Row], condition: str = "") -> str:
    """Return the statement that reads rows of one of the ledger's tables."""
    table, order = TABLES[kind]
    version = "version IN (SELECT version FROM crag.document WHERE store = $1)"
    chosen = version if table == "part" else "store = $1"
    return f"SELECT {', '.join(kind._fields)} FROM crag.{table} WHERE {chosen}{condition}{order}"


def _typed(kind: Any) -> Callable[..., Row]:
    """Return a function that makes a row of its columns. SQLite has numbers for what is true or false."""
    types = kind.__annotations__.values()
    if bool not in types:
        return kind  # type: ignore[no-any-return]
    return lambda *row: kind(*(bool(each) if of is bool else each for each, of in zip(row, types, strict=True)))
