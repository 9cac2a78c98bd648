"""Passwords in Secrets Manager are exchanged while a function runs, and nothing shows them."""

import asyncio
import json
import logging
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
from neo4j import GraphDatabase
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from cragside.adapters.aws import secrets as kept
from cragside.adapters.otel import OtelTracer
from cragside.bootstrap import Container
from cragside.domain.errors import CragsideError
from cragside.entrypoints.aws_lambda.function import Function
from cragside.entrypoints.http.app import create_app
from cragside.entrypoints.log import trace_of
from cragside.settings import load_settings
from tests.services.backends import migrated

if TYPE_CHECKING:
    from tests.services.neo4j_server import Neo4j
    from tests.services.postgres import Postgres

SENTINEL = "s3ntinel"
DOCUMENTS = ("GET", "/v1/documents", None)
ENRICH = ("POST", "/v1/enrich", {"prompt": "/rag What is a heat pump?"})


class Running:
    """A function with its container, as Lambda runs it."""

    def __init__(self, home: Path, **variables: str) -> None:
        settings = load_settings({"RAG_HOME": str(home), "RAG_TIMEOUT_SECONDS": "20", **variables})
        self.spans = InMemorySpanExporter()
        self.container = Container(settings, tracer=OtelTracer("1", self.spans))
        self.function = Function(create_app(self.container), self.container)

    def answer(self, method: str, path: str, body: Any) -> tuple[int, str]:
        """Status and body of an answer."""
        request = {"method": method, "path": path, "sourceIp": "127.0.0.1"}
        event = {
            "version": "2.0",
            "rawPath": path,
            "rawQueryString": "",
            "headers": {"host": "localhost", "content-type": "application/json"},
            "requestContext": {"http": request},
            "body": json.dumps(body) if body else None,
            "isBase64Encoded": False,
        }
        answered = self.function.answer(event, None)
        return answered["statusCode"], answered["body"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def run(**variables: str) -> Running:
        started.append(Running(tmp_path, **variables))
        return started[-1]

    yield run
    for each in started:
        each.function._runner.run(each.container.close())
        each.function._runner.close()


class Role:
    """A role of PostgreSQL with a password that can be changed."""

    def __init__(self, uri: str) -> None:
        self.name = f"exchanged_{secrets.token_hex(4)}"
        self._admin = uri
        self._sql(f"CREATE ROLE {self.name} LOGIN SUPERUSER PASSWORD 'one'")

    def uri(self, password: str) -> str:
        parts = urlsplit(self._admin)
        place = parts.netloc.rpartition("@")[2]
        return urlunsplit(parts._replace(netloc=f"{self.name}:{password}@{place}"))

    def change(self, password: str) -> None:
        """Change the password and end all connections."""
        self._sql(f"ALTER ROLE {self.name} PASSWORD '{password}'")
        self._sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{self.name}'")

    def remove(self) -> None:
        self.change("gone")
        self._sql(f"DROP OWNED BY {self.name}")
        self._sql(f"DROP ROLE {self.name}")

    def _sql(self, statement: str) -> None:
        async def run() -> None:
            connection = await asyncpg.connect(self._admin)
            try:
                await connection.execute(statement)
            finally:
                await connection.close()

        asyncio.run(run())


@pytest.fixture
def role(postgres: "Postgres") -> Iterator[Role]:
    with migrated(postgres) as uri:
        role = Role(uri)
        yield role
        role.remove()


def test_postgresql_hears_which_environment_of_a_function_it_serves(
    role: Role, start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_LOG_STREAM_NAME", f"2026/11/25/[$LATEST]{'0f' * 16}")
    running = start(POSTGRES_URI=role.uri("one"))
    database = running.container.database
    assert database is not None
    told = running.function._runner.run(database.value("SELECT current_setting('application_name')"))
    assert told == f"cragside-{'0f' * 16}"


def test_a_running_function_takes_up_a_new_password_of_postgresql(
    role: Role, manager: Any, start: Callable[..., Running]
) -> None:
    secret = manager.create_secret(Name="address", SecretString=role.uri("one"))["ARN"]
    running = start(POSTGRES_URI_SECRET=secret)
    assert running.container.secrets._clients == {}, "nothing is read before it is needed"
    assert running.answer(*DOCUMENTS)[0] == 200

    manager.put_secret_value(SecretId=secret, SecretString=role.uri("two"))
    assert running.answer(*DOCUMENTS)[0] == 200, "open connections stay"
    role.change("two")
    assert running.answer(*DOCUMENTS)[0] == 200

    role.change("three")
    status, told = running.answer(*DOCUMENTS)
    assert (status, "the password" in told) == (503, True)
    manager.put_secret_value(SecretId=secret, SecretString=role.uri("three"))
    assert running.answer(*DOCUMENTS)[0] == 200


def test_an_address_of_another_database_is_taken_up_by_all_connections(
    role: Role, postgres: "Postgres", manager: Any, start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "_FRESH_SECONDS", 0.0)
    secret = manager.create_secret(Name="address", SecretString=role.uri("one"))["ARN"]
    running = start(POSTGRES_URI_SECRET=secret)
    asked = "SELECT current_database()"
    database = running.container.database
    assert database is not None
    run = running.function._runner.run
    before = run(database.value(asked))
    with migrated(postgres) as other:
        parts = urlsplit(role.uri("one"))
        there = urlunsplit(parts._replace(path=urlsplit(other).path))
        manager.put_secret_value(SecretId=secret, SecretString=there)
        assert before != run(database.value(asked)) == urlsplit(other).path[1:]


@pytest.fixture
def neo4j_user(neo4j: "Neo4j") -> Iterator[Callable[[str], str]]:
    """The name of a user of Neo4j; each call changes its password."""
    name = f"exchanged_{secrets.token_hex(4)}"
    with GraphDatabase.driver(neo4j.address, auth=neo4j.auth) as driver:

        def change(password: str) -> str:
            made = f"CREATE OR REPLACE USER {name} SET PASSWORD $password CHANGE NOT REQUIRED"
            driver.execute_query(made, password=password, database_="system")
            return name

        yield change
        driver.execute_query(f"DROP USER {name} IF EXISTS", database_="system")


def graphs(neo4j: "Neo4j", start: Callable[..., Running], user: str, secret: str) -> Running:
    return start(
        POSTGRES_URI="postgresql://nobody:none@127.0.0.1:1/none",
        NEO4J_URI=neo4j.address,
        NEO4J_USERNAME=user,
        NEO4J_PASSWORD_SECRET=secret,
    )


def asked(running: Running) -> str:
    """Return the answer of Neo4j, or the failure with its causes."""
    fenced = running.container.graphs
    assert fenced is not None
    try:
        return str(running.function._runner.run(fenced.server()))
    except Exception as error:
        shown = getattr(error, "unusable", str(error))
        return "\n".join((shown, repr(error), repr(error.__cause__), trace_of(error)))


def test_a_running_function_takes_up_a_new_password_of_neo4j(
    neo4j: "Neo4j", neo4j_user: Callable[[str], str], manager: Any, start: Callable[..., Running]
) -> None:
    secret = manager.create_secret(Name="password", SecretString="password-one")["ARN"]
    running = graphs(neo4j, start, neo4j_user("password-one"), secret)
    assert "'5." in asked(running) or "'20" in asked(running)
    manager.put_secret_value(SecretId=secret, SecretString="password-two")
    neo4j_user("password-two")
    assert "'5." in asked(running) or "'20" in asked(running)


def shown_by(running: Running, capture: pytest.LogCaptureFixture, output: pytest.CaptureFixture[str]) -> str:
    """All that the function has written and sent."""
    spans = "".join(span.to_json() for span in running.spans.get_finished_spans())
    return capture.text + "".join(output.readouterr()) + spans + repr(running.container.settings)


@pytest.mark.parametrize(
    "uri",
    [
        "postgresql://{role}:{password}@{place}",
        "postgresql://{role}:{password}@127.0.0.1:1/none",
        "postgresql://{role}:{password}@nowhere.invalid/none",
        "postgresql://{role}:{password}@@{place}",
        "postgresql://{role}@{place}?password={password}",
        "{password}",
    ],
    ids=["refused", "unreachable", "unknown", "two-ats", "option", "no-address"],
)
def test_no_answer_log_or_trace_has_a_password_that_postgresql_refuses(
    role: Role,
    manager: Any,
    start: Callable[..., Running],
    uri: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    for quiet in ("botocore", "boto3", "urllib3"):  # at this level the SDK logs what it receives
        caplog.set_level(logging.INFO, quiet)
    place = role.uri("one").rpartition("@")[2]
    text = uri.format(role=role.name, password=SENTINEL, place=place)
    running = start(POSTGRES_URI_SECRET=manager.create_secret(Name="address", SecretString=text)["ARN"])
    answers = [running.answer(*DOCUMENTS), running.answer(*ENRICH)]
    assert answers[0][0] == 503
    shown = str(answers) + shown_by(running, caplog, capfd)
    database = running.container.database
    assert database is not None
    try:
        running.function._runner.run(database.value("SELECT 1"))
    except (OSError, asyncpg.PostgresError, CragsideError) as error:
        shown += "\n".join((repr(error), repr(error.__cause__), trace_of(error)))
    assert "cragside.enrich" in shown
    assert SENTINEL not in shown


@pytest.mark.parametrize("reachable", [True, False])
def test_no_failure_log_or_trace_has_a_password_that_neo4j_refuses(
    neo4j: "Neo4j",
    manager: Any,
    start: Callable[..., Running],
    reachable: bool,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    for quiet in ("botocore", "boto3", "urllib3"):
        caplog.set_level(logging.INFO, quiet)
    secret = manager.create_secret(Name="password", SecretString=SENTINEL)["ARN"]
    running = graphs(neo4j, start, f"nobody_{secrets.token_hex(4)}", secret)
    if not reachable:
        running = start(
            POSTGRES_URI="postgresql://nobody:none@127.0.0.1:1/none",
            NEO4J_URI="bolt://127.0.0.1:1",
            NEO4J_USERNAME="nobody",
            NEO4J_PASSWORD_SECRET=secret,
        )
    failure = asked(running)
    assert ("the user or the password" in failure) is reachable
    running.answer(*ENRICH)
    assert SENTINEL not in failure + shown_by(running, caplog, capfd)
