"""The addresses of databases, read before anything is connected or printed."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from cragside.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from pydantic import SecretStr

    from cragside.adapters.neo4j.address import Neo4jAddress
    from cragside.adapters.postgres.address import PostgresAddress
    from cragside.adapters.qdrant.address import QdrantAddress
    from cragside.adapters.redis.address import RedisAddress
    from cragside.settings import Settings

# Of each process. PostgreSQL's default is 100 for all. A function has one request at a time.
_CONNECTIONS, _CONNECTIONS_ON_LAMBDA = 10, 2
_NAME = "cragside"


@contextmanager
def configured(variable: str, *, extra: str = "servers", use: str = "is set") -> Iterator[None]:
    """Raise `ConfigurationError` where the block reads an address that cannot be used, or imports what is missing.

    What is missing comes with the `extra`. `use` says why it is needed.
    """
    from cragside.adapters.bad_address import BadAddress  # here: a store in files needs no adapter of a database

    try:
        yield
    except BadAddress as error:
        raise ConfigurationError(f"{variable}: {error}.", variable=variable) from None
    except ModuleNotFoundError as error:
        missing = f"{variable} {use}, but {error.name} is not installed. Install the extra `{extra}` of cragside."
        raise ConfigurationError(missing, variable=variable) from error


def check_addresses(settings: "Settings") -> None:
    """Raise `ConfigurationError` for an address that does not say where its database is. Nothing is asked there."""
    checks: dict[str, tuple[SecretStr | None, Callable[[Settings], object]]] = {
        "POSTGRES_URI": (settings.postgres_uri, postgres_address),
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


def postgres_address(settings: "Settings", uri: str | None = None) -> "PostgresAddress":
    """Read this address or the one in POSTGRES_URI, as connections use it. Raises `BadAddress`, as the others do."""
    from cragside.adapters.postgres.address import PostgresAddress

    address = PostgresAddress.parse(uri or _text(settings.postgres_uri))
    if address.application_name == _NAME and (stream := os.environ.get("AWS_LAMBDA_LOG_STREAM_NAME")):
        # An environment has one request at a time: its log has which one a line of PostgreSQL's log belongs to.
        address = replace(address, application_name=f"{_NAME}-{stream.rpartition(']')[2]}")
    if not address.iam:
        return address
    from cragside.adapters.aws.database_tokens import DatabaseTokens

    return replace(address, password=DatabaseTokens(address.host, address.port, address.user or "").make)


def neo4j_address(settings: "Settings") -> "Neo4jAddress":
    """Read NEO4J_URI and what is set beside it."""
    from cragside.adapters.neo4j.address import Neo4jAddress

    return Neo4jAddress.parse(
        _text(settings.neo4j_uri),
        user=settings.neo4j_username,
        password=_text(settings.neo4j_password),
        database=settings.neo4j_database,
        password_apart=settings.neo4j_password_secret is not None,
    )


def qdrant_address(settings: "Settings", key: str | None = None) -> "QdrantAddress":
    """Read QDRANT_URL, with this key or the one in QDRANT_API_KEY."""
    from cragside.adapters.qdrant.address import QdrantAddress

    apart = settings.qdrant_api_key_secret is not None
    return QdrantAddress.parse(_text(settings.qdrant_url), key or _text(settings.qdrant_api_key), key_apart=apart)


def redis_address(settings: "Settings", uri: str | None = None) -> "RedisAddress":
    """Read this address or the one in REDIS_URI."""
    from cragside.adapters.redis.address import RedisAddress

    return RedisAddress.parse(uri or _text(settings.redis_uri))


def usual_connections() -> int:
    """Tell how many connections a process has to a server, unless a setting says so."""
    return _CONNECTIONS_ON_LAMBDA if "AWS_LAMBDA_FUNCTION_NAME" in os.environ else _CONNECTIONS


def _text(value: "SecretStr | None") -> str:
    return value.get_secret_value() if value else ""
