"""The databases of servers, by their settings."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import SecretStr

from cragside.adapters.postgres.address import BadAddress, PostgresAddress
from cragside.domain.errors import ConfigurationError, ServiceUnavailable

if TYPE_CHECKING:
    from cragside.adapters.postgres.database import PostgresDatabase
    from cragside.ports.embedder import Embedder

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


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """A database as `doctor` shows it. `remedy` is empty if the tables are there."""

    version: str
    detail: str
    remedy: str


async def examine(database: "PostgresDatabase", *, needs_age: bool = False) -> DatabaseState:
    """What there is in the database. Raises `ServiceUnavailable`."""
    from cragside.adapters.lightrag.ledger.postgres.schema import SCHEMA_VERSION, version_of
    from cragside.adapters.lightrag.ledger.postgres.store import translating
    from cragside.adapters.postgres.versions import versions_of

    async with translating():
        server, vector, age = await versions_of(database)
        found = await version_of(database)
    detail = f"{database.address}, pgvector {vector or 'is missing'}"
    if needs_age:
        detail += f", AGE {age or 'is missing'}"
    if found > SCHEMA_VERSION:
        return DatabaseState(server, detail, f"Its tables are of a later cragside (format {found}). Update this one.")
    return DatabaseState(server, detail, "" if found and (age or not needs_age) else "Run `cragside migrate`.")


async def migrate(database: "PostgresDatabase", embedder: "Embedder", *, age: bool = False) -> bool:
    """Make the tables, those for the model's vectors, and with `age` the extension. Whether the former were missing.

    Raises `ServiceUnavailable`, also for tables of a later version.
    """
    from cragside.adapters.lightrag.backends.postgres_tables import migrate as make_tables
    from cragside.adapters.lightrag.ledger.failures import StoreFormatError

    (vector,) = await embedder.embed(["any text"])
    try:
        return await make_tables(database, model=embedder.name, dimensions=len(vector), age=age)
    except StoreFormatError as error:
        raise ServiceUnavailable("knowledge_base", f"{database.address}: {error}") from error
