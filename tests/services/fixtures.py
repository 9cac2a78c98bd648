"""The fixtures of real servers, a pytest plugin.

`postgres`, `postgres_age`, `pgbouncer`, `neo4j`, `redis`, `qdrant`, `ollama`, `llama_cpp`, `llama_cpp_reranker` and
`toxiproxy` are shared by the whole run, also by the workers of xdist. TEST_POSTGRES_URI, TEST_POSTGRES_AGE_URI,
TEST_NEO4J_URI, TEST_REDIS_URI and TEST_QDRANT_URI name servers to use instead of starting some. `database`,
`age_database`, `redis_database` and `graph_label` give a test a place of its own in them. `started` starts one for a
single test, which may pause, stop and kill it. `chromium` and `axe_core` are programs that the run fetches.

A test that asks for a server gets the mark `services`. A parameter that asks for one has
`marks=pytest.mark.services("postgres")`. The run ends with a list of the servers and of what ran on them.
"""

import asyncio
import os
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from tests.services.requirement import stay_down
from tests.services.run import Report, Run
from tests.services.server import Server
from tests.services.tools import Unavailable

if TYPE_CHECKING:  # the drivers take a second to import, which most runs can do without
    from tests.services.neo4j_server import Neo4j
    from tests.services.pgbouncer import Pgbouncer
    from tests.services.postgres import Postgres
    from tests.services.redis_server import Redis
    from tests.services.toxiproxy import Toxiproxy

_SERVICES = "services"
_STARTED = "started"
_MARKS = dict.fromkeys(
    (
        *("postgres", "postgres_age", "pgbouncer", "neo4j", "redis", "qdrant", "toxiproxy"),
        *("llama_cpp", "llama_cpp_reranker", _STARTED),
    ),
    _SERVICES,
)
_MARKS |= {"ollama": "real_ollama", "searxng": "real_searxng", "chromium": "browser"}
_RUN = pytest.StashKey[Run]()
_PROPERTY = "server"
_GIVEN = "from"
S = TypeVar("S", bound=Server)


class Servers:
    """Starts servers for tests, and keeps a report of each. Tests skip or fail where one is not to be had."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.run = run.name

    def shared(self, name: str, start: Callable[[], Server], given: Callable[[str], str] | None = None) -> str:
        """The address of a server that lasts for the run, or of the one that the environment names.

        `given` tells the version of the latter.
        """
        variable = f"TEST_{name.upper()}_URI"
        uri = os.environ.get(variable) if given else None

        def report() -> Report:
            if uri and given:
                return Report(name, uri, given(uri), f"{_GIVEN} {variable}")
            server = start()
            server.start()
            return Report(name, server.uri, server.version())

        return self._uri(self._run.report(name, report))

    def program(self, name: str, find: Callable[[], Report]) -> str:
        """Find a program that tests start themselves, once in a run."""
        return self._uri(self._run.report(name, find))

    @contextmanager
    def private(self, name: str, start: Callable[[], S]) -> Iterator[S]:
        """A server of the caller's own."""
        with ExitStack() as stack:
            try:
                server = stack.enter_context(start())
                version = server.version()
            except Unavailable as failure:
                self.note(Report(name, reason=str(failure)))
                raise  # another one was there
            self.note(Report(name, server.uri, version, "for single tests"))
            yield server

    def note(self, report: Report) -> str:
        """The address of a server that nobody shares, after noting it once."""
        return self._uri(self._run.report(f"{report.name}-private", lambda: report))

    def _uri(self, report: Report) -> str:
        if report.reason:
            stay_down(f"{report.name}: {report.reason}", os.environ)
        return report.uri


@pytest.fixture(scope="session")
def servers(request: pytest.FixtureRequest) -> Servers:
    return Servers(request.config.stash[_RUN])


@pytest.fixture(scope="session")
def postgres(servers: Servers) -> "Postgres":
    """PostgreSQL with pgvector."""
    return _postgres(servers, "postgres", "vector")


@pytest.fixture(scope="session")
def postgres_age(servers: Servers) -> "Postgres":
    """PostgreSQL with pgvector and AGE."""
    return _postgres(servers, "postgres_age", "vector", "age")


@pytest.fixture(scope="session")
def pgbouncer(servers: Servers, postgres: "Postgres") -> "Pgbouncer":
    """A pgbouncer in transaction mode, in front of `postgres`."""
    from tests.services.pgbouncer import Pgbouncer, PgbouncerServer

    return Pgbouncer(servers.shared("pgbouncer", lambda: PgbouncerServer(postgres.uri)))


@pytest.fixture(scope="session")
def neo4j(servers: Servers) -> "Neo4j":
    """Neo4j Community."""
    from tests.services.neo4j_server import Neo4j, Neo4jServer

    return Neo4j(servers.shared("neo4j", Neo4jServer, lambda uri: Neo4j(uri).version()))


@pytest.fixture(scope="session")
def redis(servers: Servers) -> "Redis":
    """Redis."""
    from tests.services.redis_server import Redis, RedisServer

    return Redis(servers.shared("redis", RedisServer, lambda uri: Redis(uri).version()))


@pytest.fixture(scope="session")
def qdrant(servers: Servers) -> str:
    """The address of what stands in for Qdrant, unless the environment names a server."""
    from tests.services.qdrant_server import QdrantStandIn, version_of

    return servers.shared("qdrant", QdrantStandIn, version_of)


@pytest.fixture(scope="session")
def ollama(servers: Servers) -> str:
    """The address of an Ollama with two small models."""
    from tests.services import ollama

    return servers.shared("ollama", ollama.server)


@pytest.fixture(scope="session")
def llama_cpp(servers: Servers) -> str:
    """The address of llama.cpp's server with a small model that chats and embeds. It asks for `llama_cpp.KEY`."""
    from tests.services import llama_cpp

    return servers.shared("llama_cpp", llama_cpp.chat_server)


@pytest.fixture(scope="session")
def llama_cpp_reranker(servers: Servers) -> str:
    """The address of llama.cpp's server with a model that ranks, with random weights. It asks for `llama_cpp.KEY`."""
    from tests.services import llama_cpp

    return servers.shared("llama_cpp_reranker", llama_cpp.rerank_server)


@pytest.fixture(scope="session")
def toxiproxy(servers: Servers) -> "Toxiproxy":
    """A server of proxies that harm what passes."""
    from tests.services.toxiproxy import Toxiproxy, ToxiproxyServer

    return Toxiproxy(servers.shared("toxiproxy", ToxiproxyServer))


@pytest.fixture(scope="session")
def chromium(servers: Servers) -> str:
    """The program of a browser."""
    from tests.services import chromium

    return servers.program(chromium.NAME, chromium.report)


@pytest.fixture(scope="session")
def axe_core(servers: Servers) -> str:
    """The script that looks for barriers in a page."""
    from tests.services import axe

    return Path(servers.program(axe.NAME, axe.report)).read_text()


@pytest.fixture
async def database(postgres: "Postgres") -> AsyncIterator[str]:
    """The address of a new PostgreSQL database, with pgvector and no tables."""
    async with postgres.database() as uri:
        yield uri


@pytest.fixture
async def age_database(postgres_age: "Postgres") -> AsyncIterator[str]:
    """The address of a new PostgreSQL database, with pgvector, AGE and no tables."""
    async with postgres_age.database() as uri:
        yield uri


@pytest.fixture
async def redis_database(redis: "Redis") -> AsyncIterator[str]:
    """The address of an empty Redis database."""
    async with redis.database() as uri:
        yield uri


@pytest.fixture
async def graph_label(neo4j: "Neo4j") -> AsyncIterator[str]:
    """A label of Neo4j that no other test has."""
    async with neo4j.label() as label:
        yield label


@pytest.fixture
def started(servers: Servers, request: pytest.FixtureRequest) -> Iterator[Callable[[str, Callable[[], S]], S]]:
    """A function that starts a server for this test alone: `started("postgres", PostgresServer)`."""
    with ExitStack() as stack:

        def start(name: str, make: Callable[[], S]) -> S:
            _note_use(request.node, {name})
            return stack.enter_context(servers.private(name, make))

        yield start


def pytest_configure(config: pytest.Config) -> None:
    """Begin a run, or join it in a worker of xdist."""
    joined = getattr(config, "workerinput", {}).get(_PROPERTY)
    config.stash[_RUN] = Run(Path(joined)) if joined else Run.begin()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of xdist which run it is part of."""
    node.workerinput[_PROPERTY] = str(node.config.stash[_RUN].folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the servers, in the process that began the run."""
    if not hasattr(config, "workerinput") and _RUN in config.stash:
        _forget(config.stash[_RUN])
        config.stash[_RUN].end()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what needs servers, and note which."""
    asked = set(getattr(item, "fixturenames", ())) & _MARKS.keys()
    marks = {mark.name for mark in item.iter_markers()} - {_SERVICES}
    named = {name for name, mark in _MARKS.items() if mark in marks}
    if not named:
        for name in sorted(asked):
            item.add_marker(_MARKS[name])
    told = {name for mark in item.iter_markers(_SERVICES) for name in mark.args}
    _note_use(item, asked - {_STARTED} | named | told)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """List the servers, their versions and the suites that ran on them."""
    reports = config.stash[_RUN].reports()
    if not reports:
        return
    suites = _suites(terminalreporter.stats)
    terminalreporter.section("servers")
    for name, same in groupby(reports, key=lambda report: report.name):
        for report in same:
            state = (
                f"NOT THERE: {' '.join(report.reason.split())}"
                if report.reason
                else f"{report.version} ({report.started})"
            )
            terminalreporter.write_line(f"{name}: {state}", red=bool(report.reason))
        for suite, outcomes in sorted(suites[name].items()):
            counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
            terminalreporter.write_line(f"    {suite}: {counts}")


def _postgres(servers: Servers, name: str, *extensions: str) -> "Postgres":
    from tests.services.postgres import Postgres, PostgresServer

    def given(uri: str) -> str:
        return Postgres(uri, *extensions).version()

    uri = servers.shared(name, lambda: PostgresServer(age="age" in extensions), given)
    return Postgres(uri, *extensions, run=servers.run)


def _forget(run: Run) -> None:
    """Drop what the run made in PostgreSQL servers that are not its own."""
    for report in run.reports():
        if report.name.startswith("postgres") and report.started.startswith(_GIVEN):
            from tests.services.postgres import Postgres

            asyncio.run(Postgres(report.uri, run=run.name).forget())


def _note_use(item: pytest.Item, names: set[str]) -> None:
    noted = {value for name, value in item.user_properties if name == _PROPERTY}
    item.user_properties += [(_PROPERTY, name) for name in sorted(names - noted)]


def _suites(stats: dict[str, list[Any]]) -> dict[str, dict[str, Counter[str]]]:
    """The outcomes of tests by server and file."""
    suites: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in stats.get(outcome, ()):
            for name, value in getattr(report, "user_properties", ()):  # a module that cannot be imported has none
                if name == _PROPERTY:
                    suites[value][report.nodeid.partition("::")[0]][outcome] += 1
    return suites
