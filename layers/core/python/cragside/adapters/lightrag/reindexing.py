"""Building a store anew with another embedding model, document by document."""

from collections.abc import Callable

from cragside.adapters.lightrag.ledger.sqlite.schema import APART, PARTED
from cragside.adapters.lightrag.library import cut_uncut
from cragside.adapters.lightrag.part_indexer import embed, extend_graph
from cragside.adapters.lightrag.store import Store
from cragside.domain.errors import CragsideError, ServiceUnavailable
from cragside.domain.indexing import DocumentRecord, Task

_COLUMNS = (
    "id, content_hash, state, name, title, file_type, doc_type, size, characters, created_at, updated_at, track,"
    " enrich, tier1, metadata, marks, text"
)
_AS_IT_WAS = "The old store is as it was."


async def rebuild(old: Store, fresh: Store, progress: Callable[[str], None]) -> int:
    """Fill an empty store with the documents of another one, and what is known of them; how many they are.

    Documents keep their passages. What was enriched is in the graph again; what was waiting for that, or was given up,
    is as it was. Raises `ServiceUnavailable` that names the document that cannot be indexed. Only while nobody writes
    to the old store.
    """
    documents = _documents(old)
    _copy_parting(old, fresh)
    for identifier in documents:
        _copy(old, fresh, identifier)
    _copy_queries(old, fresh)
    await cut_uncut(fresh)
    for identifier, name in documents.items():
        try:
            await _index(old, fresh, identifier)
        except CragsideError as error:
            raise ServiceUnavailable("knowledge_base", f"{name}: {error}. {_AS_IT_WAS}") from error
        progress(name)
    _check(documents, fresh)
    return len(documents)


def _documents(store: Store) -> dict[str, str]:
    """Names by ids."""
    return dict(store.database.all("SELECT id, name FROM document WHERE state = 'current' ORDER BY name"))


def _copy(old: Store, fresh: Store, identifier: str) -> None:
    version, *row = old.database.one(
        f"SELECT version, {_COLUMNS} FROM document WHERE state = 'current' AND id = ?",  # noqa: S608 (our own names)
        (identifier,),
    )
    parts = old.database.all(
        "SELECT number, key, first, last, enrichment, CASE WHEN embedded THEN error ELSE '' END, tier3, enriched_at"
        " FROM part WHERE version = ?",
        (version,),
    )
    chunks = old.database.all("SELECT id, part, number, page, section, tier2 FROM chunk WHERE version = ?", (version,))
    texts = old.database.all(
        "SELECT namespace, kv.id, json_set(value, '$.llm_cache_list', json('[]')) FROM kv"
        " JOIN chunk ON chunk.id = kv.id WHERE namespace = 'text_chunks' AND version = ?",
        (version,),
    )
    with fresh.database.transaction() as connection:
        marks = ", ".join("?" * len(row))
        added = connection.execute(f"INSERT INTO document ({_COLUMNS}) VALUES ({marks})", row).lastrowid  # noqa: S608
        connection.executemany(
            "INSERT INTO part VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?, ?)", [(added, *part) for part in parts]
        )
        connection.executemany(
            "INSERT INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?)", [(chunk[0], added, *chunk[1:]) for chunk in chunks]
        )
        connection.executemany("INSERT INTO kv VALUES (?, ?, ?)", texts)
        connection.executemany(
            "INSERT INTO origin VALUES (?, ?)",
            old.database.all("SELECT document_id, source FROM origin WHERE document_id = ?", (identifier,)),
        )
        # The graph is empty yet.
        connection.execute(
            "UPDATE part SET enrichment = 'pending' WHERE version = ? AND enrichment = 'enriched'", (added,)
        )


def _copy_parting(old: Store, fresh: Store) -> None:
    """A store whose exchanges are still beside its documents is parted when it is opened, built anew or not."""
    with fresh.database.transaction() as connection:
        connection.execute("DELETE FROM meta WHERE key = ?", (APART,))
        connection.executemany(
            "INSERT INTO meta VALUES (?, ?)",
            old.database.all("SELECT key, value FROM meta WHERE key = ? OR key GLOB ?", (APART, f"{PARTED}*")),
        )


def _copy_queries(old: Store, fresh: Store) -> None:
    with fresh.database.transaction() as connection:
        connection.executemany(
            "INSERT INTO query VALUES (?, ?, ?)",
            old.database.all("SELECT id, text, created_at FROM query ORDER BY rowid"),
        )


async def _index(old: Store, fresh: Store, identifier: str) -> None:
    record, known = fresh.catalogue.record(identifier), old.catalogue.record(identifier)
    if record is None or known is None:
        return  # the check at the end tells
    enriched = {part.number for part in known.parts if part.enrichment == "enriched"}
    for part in record.parts:
        task = _task(fresh, record, part.number)
        if stored := fresh.catalogue.part(task):
            if part.number in enriched:
                await extend_graph(fresh, task, stored)
            await embed(fresh, task, stored)


def _task(store: Store, record: DocumentRecord, number: int) -> Task:
    return Task(store.workspace, record.id, record.content_hash, number, "embed")


def _check(documents: dict[str, str], fresh: Store) -> None:
    """Nothing may be missing when the old store is given up."""
    passages, found = (
        fresh.database.one(sql)[0] for sql in ("SELECT count(*) FROM chunk", "SELECT count(*) FROM passage")
    )
    if _documents(fresh) != documents or passages != found:
        raise ServiceUnavailable(
            "knowledge_base", f"Of {len(documents)} documents some would have been lost. {_AS_IT_WAS}"
        )
