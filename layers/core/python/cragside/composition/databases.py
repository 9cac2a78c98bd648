"""The databases of servers: their addresses, what there is in them, and PostgreSQL's tables."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.domain.faults import counted
from cragside.ports.telemetry import Standing

if TYPE_CHECKING:
    from pydantic import SecretStr

    from cragside.databases.postgres.address import PostgresAddress
    from cragside.databases.postgres.database import PostgresDatabase
    from cragside.databases.redis import RedisDatabase
    from cragside.databases.server_addresses import Neo4jAddress, QdrantAddress, RedisAddress
    from cragside.ports.embedder import Embedder
    from cragside.settings import Settings
    from cragside.store.outside.neo4j import Neo4jGraphs
    from cragside.store.outside.qdrant import QdrantVectors


# Of each process. PostgreSQL's default is 100 for all. A function has one request at a time.
_CONNECTIONS, _CONNECTIONS_ON_LAMBDA = 10, 2
# A statement ends before its function does, which then answers without it.
_SECONDS, _SECONDS_ON_LAMBDA = 30.0, 8.0
_NAME = "cragside"


@contextmanager
def configured(variable: str, *, extra: str = "servers", use: str = "is set") -> Iterator[None]:
    """Raise `ConfigurationError` where the block reads an address that cannot be used, or imports what is missing.

    What is missing comes with the `extra`. `use` says why it is needed.
    """
    from cragside.databases.server_addresses import BadAddress  # here: a store in files needs no adapter of a database

    try:
        yield
    except BadAddress as error:
        raise ConfigurationError(f"{variable}: {error}.", variable=variable) from None
    except ModuleNotFoundError as error:
        missing = f"{variable} {use}, but {error.name} is not installed. Install the extra `{extra}` of cragside."
        raise ConfigurationError(missing, variable=variable) from error


def check_addresses(settings: "Settings") -> None:
    """Raise `ConfigurationError` for an address that does not say where its database is. No database is asked."""
    checks: dict[str, tuple[SecretStr | None, Callable[[Settings], object]]] = {
        "POSTGRES_URI": (settings.postgres_uri, _checked_postgres_address),
        "NEO4J_URI": (settings.neo4j_uri, neo4j_address),
        "QDRANT_URL": (settings.qdrant_url, qdrant_address),
        "REDIS_URI": (settings.redis_uri, redis_address),
    }
    for variable, (address, parse) in checks.items():
        if address is not None:
            with configured(variable):
                parse(settings)


def postgres_place(settings: "Settings") -> str:
    """Name server and database of POSTGRES_URI, without user and password. Raises `ConfigurationError`."""
    if settings.postgres_uri_secret is not None:
        return "the database of POSTGRES_URI_SECRET"
    check_addresses(settings)
    return str(postgres_address(settings))


def postgres_address(settings: "Settings", secret: str | None = None) -> "PostgresAddress":
    """Read the address in this secret or in POSTGRES_URI, as connections use it. Raises `BadAddress`, as the others do.

    POSTGRES_URI may say what a secret in JSON does not.
    """
    from cragside.databases.postgres.address import PostgresAddress

    plain = _text(settings.postgres_uri)
    address = PostgresAddress.parse(plain) if secret is None else PostgresAddress.of_secret(secret, plain)
    if address.application_name == _NAME and (stream := os.environ.get("AWS_LAMBDA_LOG_STREAM_NAME")):
        # An environment has one request at a time: its log has which one a line of PostgreSQL's log belongs to.
        address = replace(address, application_name=f"{_NAME}-{stream.rpartition(']')[2]}")
    if not address.iam:
        return address
    from cragside.adapters.aws.secrets import DatabaseTokens

    return replace(address, password=DatabaseTokens(address.host, address.port, address.user or "").make)


# In place of a secret that nobody has read yet.
_ANY_SECRET = '{"username": "user", "password": "password", "host": "host", "dbname": "database"}'  # noqa: S105


def _checked_postgres_address(settings: "Settings") -> "PostgresAddress":
    return postgres_address(settings, None if settings.postgres_uri_secret is None else _ANY_SECRET)


def neo4j_address(settings: "Settings") -> "Neo4jAddress":
    """Read NEO4J_URI and what is set beside it."""
    from cragside.databases.server_addresses import Neo4jAddress

    return Neo4jAddress.parse(
        _text(settings.neo4j_uri),
        user=settings.neo4j_username,
        password=_text(settings.neo4j_password),
        database=settings.neo4j_database,
        password_apart=settings.neo4j_password_secret is not None,
    )


def qdrant_address(settings: "Settings", key: str | None = None) -> "QdrantAddress":
    """Read QDRANT_URL, with this key or the one in QDRANT_API_KEY."""
    from cragside.databases.server_addresses import QdrantAddress

    apart = settings.qdrant_api_key_secret is not None
    return QdrantAddress.parse(_text(settings.qdrant_url), key or _text(settings.qdrant_api_key), key_apart=apart)


def redis_address(settings: "Settings", uri: str | None = None) -> "RedisAddress":
    """Read this address or the one in REDIS_URI."""
    from cragside.databases.server_addresses import RedisAddress

    return RedisAddress.parse(uri or _text(settings.redis_uri))


def usual_connections() -> int:
    """Tell how many connections a process has to a server, unless a setting says so."""
    return _CONNECTIONS_ON_LAMBDA if "AWS_LAMBDA_FUNCTION_NAME" in os.environ else _CONNECTIONS


def usual_seconds() -> float:
    """Return the seconds that a statement to PostgreSQL may take, unless a setting says so."""
    return _SECONDS_ON_LAMBDA if "AWS_LAMBDA_FUNCTION_NAME" in os.environ else _SECONDS


def _text(value: "SecretStr | None") -> str:
    return value.get_secret_value() if value else ""


# Its statements have scoped subqueries, `CALL (node) { … }`.
_OLDEST_NEO4J = (5, 23)


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """A database as `doctor` shows it. `remedy` is empty if the tables are there."""

    version: str
    address: str
    detail: str
    remedy: str


async def examine(database: "PostgresDatabase", *, needs_age: bool = False) -> DatabaseState:
    """Describe the server and its tables. Raises `ServiceUnavailable`."""
    from cragside.store.backends.postgres_tables import inspected

    server, found, known = await inspected(database)
    detail = f"pgvector {server.vector or 'is missing'}"
    if needs_age:
        detail += f", AGE {server.age or 'is missing'}"
    detail += f", {server.connections} of {server.most_connections} connections in use"
    cause, remedy = "", ""
    if server.forbidden:
        cause = f"its role may not use {counted(server.forbidden, 'table')}"
        remedy = "Grant it the rights in docs/postgresql.md."
    elif found > known:
        cause, remedy = f"its tables are of a later cragside (format {found})", "Update this one."
    elif found and not server.vector:
        remedy = "Have a superuser run CREATE EXTENSION vector; in this database."
    elif found != known:
        cause, remedy = "its tables are missing", "Run `cragside migrate`."
    elif needs_age and not server.age:
        remedy = "Run `cragside migrate`."
    detail = f"{cause}, {detail}" if cause else detail
    return DatabaseState(server.version, database.address, detail, remedy)


async def standing(database: "PostgresDatabase") -> Standing:
    """Return the leases and the waiting changes there. Raises `ServiceUnavailable`."""
    from cragside.store.backends.postgres_tables import standing as found

    return await found(database)


async def examine_graphs(graphs: "Neo4jGraphs") -> DatabaseState:
    """Describe Neo4j. Raises `ServiceUnavailable`."""
    version, edition, database = await graphs.server()
    detail = f"database {database}, {edition} edition"
    # Neo4j's own cloud says "5.26-aura".
    old = tuple(map(int, re.findall(r"\d+", version)[:2])) < _OLDEST_NEO4J
    remedy = f"cragside needs Neo4j {'.'.join(map(str, _OLDEST_NEO4J))} or later." if old else ""
    return DatabaseState(version, graphs.address, detail, remedy)


async def examine_redis(redis: "RedisDatabase") -> DatabaseState:
    """Describe Redis, and tell if it keeps its data. Raises `ServiceUnavailable`."""
    from cragside.databases.redis import RedisFailure

    try:
        info = await redis.run(lambda client: client.info())
    except RedisFailure as error:
        raise ServiceUnavailable("knowledge_base", f"The knowledge base {error.unusable}.") from error
    policy, kept = str(info.get("maxmemory_policy", "")), bool(info.get("aof_enabled"))
    detail = f"maxmemory-policy {policy}, appendonly {'yes' if kept else 'no'}"
    remedy = "Set maxmemory-policy to noeviction, or Redis forgets what it has." if policy.startswith("allkeys") else ""
    return DatabaseState(str(info.get("redis_version", "")), str(redis.address), detail, remedy)


async def examine_qdrant(vectors: "QdrantVectors") -> DatabaseState:
    """Describe Qdrant, and tell if others can read its key. Raises `ServiceUnavailable`."""
    remedy = "Begin QDRANT_URL with https://: everybody on the way reads its key." if vectors.tells_its_key else ""
    return DatabaseState(await vectors.server(), vectors.address, "", remedy)


async def is_migrated(database: "PostgresDatabase", embedder: "Embedder") -> bool:
    """Tell if all tables are there. Raises what `migrate` raises."""
    from cragside.store.backends.postgres_tables import is_complete

    (vector,) = await embedder.embed(["any text"])
    return await is_complete(database, model=embedder.name, dimensions=len(vector))


async def migrate(database: "PostgresDatabase", embedder: "Embedder", *, age: bool = False) -> bool:
    """Make the tables and those for the model's vectors, with `age` also the extension. Tell if tables were missing.

    Raises `ServiceUnavailable`, also for tables of a later version.
    """
    from cragside.store.backends.postgres_tables import migrate as make_tables

    (vector,) = await embedder.embed(["any text"])
    return await make_tables(database, model=embedder.name, dimensions=len(vector), age=age)
