"""`cragside migrate`: sets up PostgreSQL."""

from typing import TYPE_CHECKING, Annotated

import typer

from cragside.domain.errors import ConfigurationError
from cragside.entrypoints.cli import exit_codes
from cragside.entrypoints.cli.session import session_of
from cragside.entrypoints.cli.terminal import notices, output, printable

if TYPE_CHECKING:
    from cragside.bootstrap import Container


def migrate(
    context: typer.Context,
    check: Annotated[bool, typer.Option("--check", help="Make nothing; fail if tables are missing.")] = False,
) -> None:
    """Make the tables in the database of POSTGRES_URI that are not there yet.

    Its role needs the rights to make a schema, tables and the extension pgvector, for PGGraphStorage also AGE. Servers
    and workers need only to read and write. Run it before they start, and again after RAG_EMBEDDING_MODEL changes. It
    may run at any time. It also tells which of NEO4J_URI, QDRANT_URL and REDIS_URI cannot be used; that is no failure.
    """
    session = session_of(context)
    settings = session.settings()
    if not settings.on_postgres:
        raise ConfigurationError(
            "POSTGRES_URI is not set. The store in files needs no tables.", variable="POSTGRES_URI"
        )
    if not check:
        output().print(session.run(settings, _migrated))
    elif not session.run(settings, _is_migrated):
        output().print("Tables are missing: run cragside migrate")
        raise typer.Exit(exit_codes.FAILED)
    else:
        output().print("All tables are there")


async def _migrated(container: "Container") -> str:
    from cragside.composition.databases import migrate as make_tables
    from cragside.composition.store_files import faults

    database = container.database
    assert database is not None  # noqa: S101 (the setting says so)
    settings = container.settings
    embedder = await container.open_embedder(settings.embedding_model)
    made = await make_tables(database, embedder, age=settings.graph_storage == "PGGraphStorage")
    for fault in await faults(container):
        notices().print(printable(fault), style="yellow", soft_wrap=True)
    return f"{'Made the tables' if made else 'The tables are there'}: {database.address}"


async def _is_migrated(container: "Container") -> bool:
    from cragside.composition.databases import is_migrated

    database = container.database
    assert database is not None  # noqa: S101 (the setting says so)
    return await is_migrated(database, await container.open_embedder(container.settings.embedding_model))
