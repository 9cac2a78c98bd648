"""The databases of servers, by their settings."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from pydantic import SecretStr

from cragside.adapters.postgres.address import PostgresAddress
from cragside.adapters.server_addresses import BadAddress
from cragside.domain.counted import counted
from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.ports.clock import Clock
from cragside.ports.figures import DatabaseFigures, Standing

if TYPE_CHECKING:
    from cragside.adapters.aws.secrets import Secret, SecretsManager
    from cragside.adapters.lightrag.storages.neo4j.fence import FencedGraph
    from cragside.adapters.lightrag.storages.qdrant.fence import FencedVectors
    from cragside.adapters.neo4j import Neo4jDatabase
    from cragside.adapters.postgres.database import PostgresDatabase
    from cragside.adapters.qdrant import QdrantDatabase
    from cragside.adapters.redis import RedisDatabase
    from cragside.ports.embedder import Embedder
    from cragside.settings import Settings

# Its statements have scoped subqueries, `CALL (node) { … }`.
_OLDEST_NEO4J = (5, 23)
# Of each process. PostgreSQL's default is 100 for all. A function has one request at a time.
_CONNECTIONS, _CONNECTIONS_ON_LAMBDA = 10, 2
_NAME = "cragside"

T = TypeVar("T")


def postgres_of(
    settings: "Settings", secrets: "SecretsManager", figures: DatabaseFigures | None = None
) -> "PostgresDatabase":
    """The database of POSTGRES_URI, or of its secret. Raises `ConfigurationError`."""
    address: PostgresAddress | Secret[PostgresAddress]
    if settings.postgres_uri_secret is not None:
        address = _kept(secrets, "POSTGRES_URI_SECRET", settings.postgres_uri_secret, _postgres_address)
    else:
        try:
            address = _postgres_address(_secret(settings.postgres_uri))
        except BadAddress as error:
            raise ConfigurationError(f"POSTGRES_URI: {error}.", variable="POSTGRES_URI") from None
    try:
        from cragside.adapters.postgres.database import PostgresDatabase
    except ModuleNotFoundError as error:
        missing = f"POSTGRES_URI is set, but {error.name} is not installed. Install the extra `servers` of cragside."
        raise ConfigurationError(missing, variable="POSTGRES_URI") from error
    return PostgresDatabase(address, most=settings.postgres_connections or _usual(), figures=figures)


def _postgres_address(uri: str) -> PostgresAddress:
    address = PostgresAddress.parse(uri)
    if address.application_name == _NAME and (stream := os.environ.get("AWS_LAMBDA_LOG_STREAM_NAME")):
        # An environment has one request at a time: its log has which one a line of PostgreSQL's log belongs to.
        address = replace(address, application_name=f"{_NAME}-{stream.rpartition(']')[2]}")
    if not address.iam:
        return address
    from cragside.adapters.aws.database_tokens import DatabaseTokens

    tokens = DatabaseTokens(address.host, address.port, address.user or "")
    return replace(address, password=tokens.make)


def neo4j_of(
    settings: "Settings", secrets: "SecretsManager", figures: DatabaseFigures | None, clock: Clock
) -> "Neo4jDatabase":
    """The database of NEO4J_URI. Raises `ConfigurationError`."""
    from cragside.adapters.server_addresses import Neo4jAddress

    try:
        address = Neo4jAddress.parse(
            _secret(settings.neo4j_uri),
            user=settings.neo4j_username,
            password=_secret(settings.neo4j_password),
            database=settings.neo4j_database,
            password_apart=settings.neo4j_password_secret is not None,
        )
    except BadAddress as error:
        raise ConfigurationError(f"NEO4J_URI: {error}.", variable="NEO4J_URI") from None
    try:
        from cragside.adapters.neo4j import Neo4jDatabase
    except ModuleNotFoundError as error:
        missing = f"NEO4J_URI is set, but {error.name} is not installed. Install the extra `servers` of cragside."
        raise ConfigurationError(missing, variable="NEO4J_URI") from error
    name, passwords = settings.neo4j_password_secret, None
    if name is not None:
        passwords = _kept(secrets, "NEO4J_PASSWORD_SECRET", name, str)
    most = settings.neo4j_connections or _usual()
    return Neo4jDatabase(address, most=most, passwords=passwords, figures=figures, clock=clock)


def redis_of(
    settings: "Settings", secrets: "SecretsManager", figures: DatabaseFigures | None, clock: Clock
) -> "RedisDatabase":
    """The database of REDIS_URI. Raises `ConfigurationError`."""
    from cragside.adapters.server_addresses import RedisAddress

    address: RedisAddress | Secret[RedisAddress]
    if settings.redis_uri_secret is not None:
        address = _kept(secrets, "REDIS_URI_SECRET", settings.redis_uri_secret, RedisAddress.parse)
    else:
        try:
            address = RedisAddress.parse(_secret(settings.redis_uri))
        except BadAddress as error:
            raise ConfigurationError(f"REDIS_URI: {error}.", variable="REDIS_URI") from None
    try:
        from cragside.adapters.redis import RedisDatabase
    except ModuleNotFoundError as error:
        missing = f"REDIS_URI is set, but {error.name} is not installed. Install the extra `servers` of cragside."
        raise ConfigurationError(missing, variable="REDIS_URI") from error
    return RedisDatabase(address, most=settings.redis_connections or _usual(), figures=figures, clock=clock)


def qdrant_of(
    settings: "Settings", secrets: "SecretsManager", figures: DatabaseFigures | None, clock: Clock
) -> "QdrantDatabase":
    """The server of QDRANT_URL. Raises `ConfigurationError`."""
    from cragside.adapters.server_addresses import QdrantAddress

    try:
        url, name = _secret(settings.qdrant_url), settings.qdrant_api_key_secret
        address = QdrantAddress.parse(url, _secret(settings.qdrant_api_key), key_apart=name is not None)
    except BadAddress as error:
        raise ConfigurationError(f"QDRANT_URL: {error}.", variable="QDRANT_URL") from None
    try:
        from cragside.adapters.qdrant import QdrantDatabase
    except ModuleNotFoundError as error:
        missing = f"QDRANT_URL is set, but {error.name} is not installed. Install the extra `servers` of cragside."
        raise ConfigurationError(missing, variable="QDRANT_URL") from error
    keys = None
    if name is not None:
        keys = _kept(secrets, "QDRANT_API_KEY_SECRET", name, lambda text: QdrantAddress.parse(url, text).api_key)
    return QdrantDatabase(
        address, most=settings.qdrant_connections or _usual(), keys=keys, figures=figures, clock=clock
    )


def _kept(secrets: "SecretsManager", setting: str, name: str, parse: Callable[[str], T]) -> "Secret[T]":
    from cragside.adapters.aws.secrets import TRUSTED_BY_SERVERS_SECONDS

    return secrets.secret(name, setting=setting, parse=parse, trusted_seconds=TRUSTED_BY_SERVERS_SECONDS)


def _secret(value: SecretStr | None) -> str:
    return value.get_secret_value() if value else ""


def _usual() -> int:
    return _CONNECTIONS_ON_LAMBDA if "AWS_LAMBDA_FUNCTION_NAME" in os.environ else _CONNECTIONS


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """A database as `doctor` shows it. `remedy` is empty if the tables are there."""

    version: str
    address: str
    detail: str
    remedy: str


async def examine(database: "PostgresDatabase", *, needs_age: bool = False) -> DatabaseState:
    """What there is in the database. Raises `ServiceUnavailable`."""
    from cragside.adapters.lightrag.backends.postgres_tables import inspected

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
    """The leases and the waiting changes there. Raises `ServiceUnavailable`."""
    from cragside.adapters.lightrag.backends.postgres_tables import standing as found

    return await found(database)


async def examine_graphs(graphs: "FencedGraph") -> DatabaseState:
    """What Neo4j is. Raises `ServiceUnavailable`."""
    version, edition, database = await graphs.server()
    detail = f"database {database}, {edition} edition"
    old = tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) < _OLDEST_NEO4J
    remedy = f"cragside needs Neo4j {'.'.join(map(str, _OLDEST_NEO4J))} or later." if old else ""
    return DatabaseState(version, graphs.address, detail, remedy)


async def examine_redis(redis: "RedisDatabase") -> DatabaseState:
    """What Redis is, and whether it keeps what it has. Raises `ServiceUnavailable`."""
    from cragside.adapters.redis import RedisFailure

    try:
        info = await redis.run(lambda client: client.info())
    except RedisFailure as error:
        raise ServiceUnavailable("knowledge_base", f"The knowledge base {error.unusable}.") from error
    policy, kept = str(info.get("maxmemory_policy", "")), bool(info.get("aof_enabled"))
    detail = f"maxmemory-policy {policy}, appendonly {'yes' if kept else 'no'}"
    remedy = "Set maxmemory-policy to noeviction, or Redis forgets what it has." if policy.startswith("allkeys") else ""
    return DatabaseState(str(info.get("redis_version", "")), str(redis.address), detail, remedy)


async def examine_qdrant(vectors: "FencedVectors") -> DatabaseState:
    """What Qdrant is, and whether its key is kept. Raises `ServiceUnavailable`."""
    remedy = "Begin QDRANT_URL with https://: everybody on the way reads its key." if vectors.tells_its_key else ""
    return DatabaseState(await vectors.server(), vectors.address, "", remedy)


async def is_migrated(database: "PostgresDatabase", embedder: "Embedder") -> bool:
    """Whether `migrate` would make no table. Raises as it does."""
    from cragside.adapters.lightrag.backends.postgres_tables import is_complete

    (vector,) = await embedder.embed(["any text"])
    return await is_complete(database, model=embedder.name, dimensions=len(vector))


async def migrate(database: "PostgresDatabase", embedder: "Embedder", *, age: bool = False) -> bool:
    """Make the tables, those for the model's vectors, and with `age` the extension. Whether the former were missing.

    Raises `ServiceUnavailable`, also for tables of a later version.
    """
    from cragside.adapters.lightrag.backends.postgres_tables import migrate as make_tables

    (vector,) = await embedder.embed(["any text"])
    return await make_tables(database, model=embedder.name, dimensions=len(vector), age=age)
