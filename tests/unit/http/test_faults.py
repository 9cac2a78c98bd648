"""`doctor`, `/health`, `/ready` and the log name a component that cannot be used, the cause and the remedy."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from cragside.bootstrap import Container
from cragside.databases.sqlite_files import unusable
from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.domain.faults import Fault
from cragside.settings import load_settings
from tests.services.stub_searxng import StubSearxng
from tests.told import SECRET, check, told_of

NOBODY = "127.0.0.1:9"
POSTGRES = {"POSTGRES_URI": f"postgresql://u:{SECRET}@{NOBODY}/d"}
REDIS = {"REDIS_URI": f"redis://:{SECRET}@{NOBODY}/0", "RAG_KV_STORAGE": "RedisKVStorage"}
NEO4J = {"NEO4J_URI": f"bolt://{NOBODY}", "NEO4J_USERNAME": "neo4j", "NEO4J_PASSWORD": SECRET}
QDRANT = {
    "QDRANT_URL": f"http://{NOBODY}",
    "QDRANT_API_KEY": SECRET,
    "RAG_VECTOR_STORAGE": "QdrantVectorDBStorage",
}


def nothing(_: Path) -> None:
    """The home stays as it is."""


def damaged_queue(home: Path) -> None:
    (home / ".queue.sqlite3").write_bytes(b"no queue at all" * 100)


def damaged_store(home: Path) -> None:
    (home / "default").mkdir()
    (home / "default" / "store.sqlite3").write_bytes(b"no store at all" * 100)


def file_for_a_store(home: Path) -> None:
    (home / "default").write_text("no folder")


@pytest.mark.parametrize(
    ("names", "environment", "prepare", "cause", "remedy"),
    [
        (
            ("ollama", None, "ollama"),
            {"OLLAMA_BASE_URL": f"http://u:{SECRET}@{NOBODY}"},
            nothing,
            "Ollama does not answer",
            "Start it with `ollama serve`, or correct OLLAMA_BASE_URL.",
        ),
        (
            ("searxng", None, "search"),
            {"SEARXNG_HOST": f"http://u:{SECRET}@{NOBODY}"},
            nothing,
            "SearXNG does not answer",
            "Start it, or correct SEARXNG_HOST.",
        ),
        (
            ("postgres", "knowledge_base", "store"),
            POSTGRES,
            nothing,
            "PostgreSQL does not answer.",
            "Start it, or correct POSTGRES_URI.",
        ),
        (("store", "queue", "queue"), POSTGRES, nothing, "PostgreSQL does not answer.", "or correct POSTGRES_URI."),
        (
            ("neo4j", "graph", "graph"),
            POSTGRES | NEO4J,
            nothing,
            "Neo4j does not answer.",
            "Start it, or correct NEO4J_URI.",
        ),
        (
            ("redis", "values", "values"),
            POSTGRES | REDIS,
            nothing,
            "Redis does not answer.",
            "Start it, or correct REDIS_URI.",
        ),
        (
            ("qdrant", "vectors", "vectors"),
            POSTGRES | QDRANT,
            nothing,
            "Qdrant does not answer.",
            "Start it, or correct QDRANT_URL.",
        ),
        (("queue", "queue", "queue"), {}, damaged_queue, ".queue.sqlite3 in RAG_HOME is damaged", "Move it away"),
        (("store", "knowledge_base", "store"), {}, damaged_store, "damaged", "away"),
        (("store", "knowledge_base", "store"), {}, file_for_a_store, "is not a folder.", "ove"),
    ],
)
async def test_whoever_tells_of_a_component_tells_cause_and_remedy_and_no_secret(
    names: tuple[str, str | None, str | None],
    environment: dict[str, str],
    prepare: Callable[[Path], None],
    cause: str,
    remedy: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    prepare(tmp_path)
    container = Container(load_settings({"RAG_HOME": str(tmp_path), **environment}))
    check(await told_of(container, caplog), names, cause, remedy)


async def test_a_searxng_without_json_is_told_what_to_add(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with StubSearxng() as searxng:
        searxng.status = 403
        container = Container(load_settings({"RAG_HOME": str(tmp_path), "SEARXNG_HOST": searxng.url}))
        told = await told_of(container, caplog)
    check(told, ("searxng", None, None), "refused JSON (403).", "Add json to search.formats in its settings.yml")


def full(folder: Path) -> None:
    with sqlite3.connect(folder / "full.sqlite3") as connection:
        connection.execute("PRAGMA max_page_count = 1")
        connection.execute("CREATE TABLE t (text)")


def read_only(folder: Path) -> None:
    with sqlite3.connect(folder / "read.sqlite3") as connection:
        connection.execute("CREATE TABLE t (text)")
    with sqlite3.connect(f"file:{folder}/read.sqlite3?mode=ro", uri=True) as connection:
        connection.execute("INSERT INTO t VALUES ('x')")


@pytest.mark.parametrize(("fail", "cause"), [(full, "database or disk is full"), (read_only, "a readonly database")])
def test_a_disk_that_is_full_or_read_only_is_to_be_looked_at(
    tmp_path: Path, fail: Callable[[Path], None], cause: str
) -> None:
    with pytest.raises(sqlite3.OperationalError) as failed:
        fail(tmp_path)
    error = ServiceUnavailable("queue", f"The queue {unusable(failed.value)}.")
    fault = Fault.of("queue", error, error.message)
    assert cause in fault.cause
    assert fault.remedy == "Check the permissions of its folder, and its disk."


@pytest.mark.parametrize(
    ("error", "cause", "remedy"),
    [
        (ServiceUnavailable("knowledge_base", "It fell over"), "It fell over.", "Check the disk of RAG_HOME"),
        (ServiceUnavailable("embedder", "No answer"), "No answer.", "Start it with `ollama serve`"),
        (ConfigurationError("It is wrong"), "It is wrong.", "Correct the settings."),
        (
            ServiceUnavailable("x", "No 1.5 and no a.b. `ollama pull m` gets it"),
            "No 1.5 and no a.b.",
            "`ollama pull m`",
        ),
    ],
)
def test_an_error_that_has_no_remedy_gets_that_of_its_component(error: Exception, cause: str, remedy: str) -> None:
    fault = Fault.of("store", error, str(error))
    assert fault.cause == cause
    assert fault.remedy.startswith(remedy)


def test_a_component_that_nobody_knows_is_named() -> None:
    assert str(Fault.late("oracle", 2)) == "The component oracle did not answer within 2 s. See the log."
