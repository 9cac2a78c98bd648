"""Searches of passages in PostgreSQL: by words as SQLite does, by vectors exactly or by a workspace's own index."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import corpus
from benchmarks.postgres_stores import fill
from benchmarks.words import WordSearch, recall
from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.adapters.embedded.keywords import asked_words
from cragside.domain.document import SourceText
from cragside.store.backends.postgres import PostgresBackend
from cragside.store.backends.sqlite import SqliteBackend
from cragside.store.postgres import searching
from cragside.store.postgres.searching import Values, make_near_indexes, with_words
from cragside.store.ranking import quoted
from evals.lookalike_reports import questions as questions_about
from evals.lookalike_reports import reports
from tests.services.filled_store import Filled, container_on, filled, index, questions
from tests.services.postgres import Postgres

NEAR = """SELECT found, cosine FROM crag.nearest('crag.searched', 'seq', 'vector', 'store = 1',
    'crag.near_passages_1', $1, 0.05, $2)"""
SCANS = "SELECT pg_stat_get_xact_numscans(to_regclass('crag.near_passages_1'))"


@pytest.fixture
async def store(postgres: Postgres, tmp_path: Path) -> AsyncIterator[Filled]:
    async with filled(postgres, tmp_path) as opened:
        yield opened


@pytest.fixture
def soon_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A workspace of 200 rows is a large one."""
    monkeypatch.setattr(searching, "LARGE", 200)


async def searched(store: Filled, most: int | None = 20) -> tuple[list[list[Any]], int]:
    """The nearest passages of some questions, and how often their index was read."""
    async with store.database.transaction():
        # Of so few rows, the planner may read and sort all, even where there is an index.
        await store.database.value("SELECT set_config('enable_sort', 'off', true)")
        vectors = WordLlamaEmbedder().encode(questions())
        found = [[tuple(row) for row in await store.database.all(NEAR, each.tolist(), most)] for each in vectors]
        return found, await store.database.value(SCANS) or 0


async def test_passages_rank_as_in_sqlite(store: Filled, tmp_path: Path) -> None:
    beside = container_on(SqliteBackend(), tmp_path / "sqlite")
    await index(beside)
    repository = (await beside.workspaces.open("default")).passages
    for question in questions():
        expected = [document.content for document in await repository.retrieve(question, limit=8, mode="naive")]
        assert [document.content for document in await store.retrieve(question, "naive")] == expected
    await beside.close()


async def test_the_first_ten_by_words_are_those_of_all_words(store: Filled, tmp_path: Path) -> None:
    made = reports(600)
    texts = [report.text for report in made]
    await fill(store.container, "reports", [corpus.Passage(text, "") for text in texts])
    number = await store.database.value("SELECT id FROM crag.store WHERE workspace = 'reports'")
    shares = []
    async with WordSearch.opened(tmp_path / "words", texts) as exact:
        for question, _ in questions_about(made, 30):
            best = exact.by_all(question, len(texts))
            values = Values(number)
            sql = with_words(values, asked_words(question), 30)
            assert sql
            # SQLite numbers rows from 1.
            found = {int(row[1].split("-")[3]) + 1: row[2] for row in await store.database.all(sql, *values.values)}
            assert found == pytest.approx({passage: best[passage] for passage in found}, abs=1e-4)
            shares.append(recall(found, best))
    assert sum(shares) / len(shares) >= 0.98


async def test_a_small_workspace_is_compared_exactly(store: Filled) -> None:
    assert await make_near_indexes(store.database) == 0
    assert (await searched(store))[1] == 0


async def test_a_table_that_has_grown_is_counted(store: Filled) -> None:
    # Else PostgreSQL takes any index that begins with the workspace, and reads all of its edges.
    counted = "SELECT last_analyze IS NOT NULL FROM pg_stat_user_tables WHERE relname = 'lightrag_graph_edges'"
    async with store.database.transaction():
        changed = "WITH changed AS (UPDATE lightrag_graph_edges SET updated_at = now() RETURNING 1)"
        assert await store.database.value(f"{changed} SELECT count(*) FROM changed") > 100
        await store.database.value("SELECT pg_stat_force_next_flush()")
    assert not await store.database.value(counted)
    await make_near_indexes(store.database)
    assert await store.database.value(counted)


@pytest.mark.usefixtures("soon_large")
async def test_a_large_workspace_is_searched_by_its_own_index(store: Filled) -> None:
    exact, _ = await searched(store)
    assert await make_near_indexes(store.database) == 3  # passages, entities and relations
    assert await make_near_indexes(store.database) == 0
    found, scans = await searched(store)
    assert scans == len(questions())
    same = [
        len({*map(tuple, some)} & {*map(tuple, others)}) / len(others)
        for some, others in zip(found, exact, strict=True)
    ]
    assert sum(same) / len(same) >= 0.98


@pytest.mark.usefixtures("soon_large")
async def test_a_search_without_a_limit_compares_all_passages(store: Filled) -> None:
    exact, _ = await searched(store, most=None)
    await make_near_indexes(store.database)
    assert await searched(store, most=None) == (exact, 0)


@pytest.mark.usefixtures("soon_large")
async def test_an_index_that_was_begun_and_never_ended_is_made_anew(store: Filled) -> None:
    await make_near_indexes(store.database)
    broken = "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'crag.near_passages_1'::regclass RETURNING 1"
    assert await store.database.value(broken)
    assert (await searched(store))[1] == 0
    assert await make_near_indexes(store.database) == 1
    assert (await searched(store))[1] == len(questions())


@pytest.mark.usefixtures("soon_large")
async def test_a_process_that_wrote_much_leaves_indexes_behind(store: Filled, tmp_path: Path) -> None:
    container = container_on(PostgresBackend(store.database), tmp_path / "other")
    repository = (await container.workspaces.open("default")).passages
    await repository.save_documents([SourceText("one more.md", "Sea otters eat sea urchins.")])
    await container.close()
    assert (await searched(store))[1] == len(questions())


@pytest.mark.usefixtures("soon_large")
async def test_the_indexes_of_a_removed_workspace_go(store: Filled) -> None:
    await make_near_indexes(store.database)
    await store.container.workspaces.remove("default")
    await make_near_indexes(store.database)
    left = "SELECT count(*) FROM pg_class WHERE relname ~ '^(near_passages|cragside_near_[a-z]+)_[0-9]+$'"
    assert await store.database.value(left) == 0


async def test_the_counts_follow_what_is_written_and_deleted(store: Filled) -> None:
    workspace = await store.container.workspaces.open("default")
    name = corpus.documents(corpus.passages(8), each=4)[1][0]
    (gone,) = await workspace.documents.named(name)
    assert await workspace.documents.delete(gone.id)
    words: Counter[str] = Counter()
    length = passages = 0
    for lexemes, size in await store.database.all("SELECT tsvector_to_array(words), length FROM crag.searched"):
        words.update(lexemes)
        length, passages = length + size, passages + 1
    assert passages == 236
    assert tuple(await store.database.one("SELECT passages, length FROM crag.extent")) == (passages, length)
    counted = await store.database.all("SELECT word, passages FROM crag.word")
    assert {quoted(word, 1).strip("'"): count for word, count in counted} == words
