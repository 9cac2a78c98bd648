"""The databases of servers, by their settings."""

from typing import TYPE_CHECKING

from pydantic import SecretStr

from cragside.adapters.postgres.address import BadAddress, PostgresAddress
from cragside.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from cragside.adapters.postgres.database import PostgresDatabase

# Of each process. PostgreSQL's default is 100 for all.
_CONNECTIONS = 10


def postgres_of(uri: SecretStr) -> "PostgresDatabase":
    """The database of POSTGRES_URI. Raises `ConfigurationError`."""
    try:
        address = PostgresAddress.parse(uri.get_secret_value())
    except BadAddress as error:
        raise ConfigurationError(f"POSTGRES_URI: {error}.", variable="POSTGRES_URI") from None
    try:
        from cragside.adapters.postgres.database import PostgresDatabase
    except ModuleNotFoundError as error:
        missing = f"POSTGRES_URI is set, but {error.name} is not installed. Install cragside[servers]."
        raise ConfigurationError(missing, variable="POSTGRES_URI") from error
    return PostgresDatabase(address, most=_CONNECTIONS)
