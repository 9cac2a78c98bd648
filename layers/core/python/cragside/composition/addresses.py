"""The addresses of databases, read before anything is connected or printed."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from cragside.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from pydantic import SecretStr

    from cragside.settings import Settings


def check_addresses(settings: "Settings") -> None:
    """Raise `ConfigurationError` for an address that does not say where its database is. Nothing is asked there."""
    checks: dict[str, tuple[SecretStr | None, Callable[[Settings], object]]] = {
        "POSTGRES_URI": (settings.postgres_uri, _postgres),
        "NEO4J_URI": (settings.neo4j_uri, _neo4j),
        "QDRANT_URL": (settings.qdrant_url, _qdrant),
        "REDIS_URI": (settings.redis_uri, _redis),
    }
    for variable, (address, parse) in checks.items():
        if address is None:
            continue
        from cragside.adapters.server_addresses import BadAddress  # a store in files needs no adapter of a database

        try:
            parse(settings)
        except BadAddress as error:
            raise ConfigurationError(f"{variable}: {error}.", variable=variable) from None


def postgres_place(settings: "Settings") -> str:
    """Server and database of POSTGRES_URI, without user and password. Raises `ConfigurationError`."""
    if settings.postgres_uri_secret is not None:
        return "the database of POSTGRES_URI_SECRET"
    check_addresses(settings)
    return str(_postgres(settings))


def _postgres(settings: "Settings") -> object:
    from cragside.adapters.postgres.address import PostgresAddress

    return PostgresAddress.parse(_text(settings.postgres_uri))


def _neo4j(settings: "Settings") -> object:
    from cragside.adapters.server_addresses import Neo4jAddress

    return Neo4jAddress.parse(
        _text(settings.neo4j_uri),
        user=settings.neo4j_username,
        password=_text(settings.neo4j_password),
        database=settings.neo4j_database,
        password_apart=settings.neo4j_password_secret is not None,
    )


def _qdrant(settings: "Settings") -> object:
    from cragside.adapters.server_addresses import QdrantAddress

    return QdrantAddress.parse(_text(settings.qdrant_url), _text(settings.qdrant_api_key))


def _redis(settings: "Settings") -> object:
    from cragside.adapters.server_addresses import RedisAddress

    return RedisAddress.parse(_text(settings.redis_uri))


def _text(value: "SecretStr | None") -> str:
    return value.get_secret_value() if value else ""
