"""Many execution environments of a function at once, each with its own small pool, behind one pgbouncer."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import asyncpg

from cragside.bootstrap import Container
from cragside.composition.databases import migrate
from cragside.domain.document import SourceText
from cragside.settings import Settings
from tests.services.pgbouncer import Pgbouncer, PgbouncerServer
from tests.services.postgres import Postgres

ENVIRONMENTS, POOL, SESSIONS = 50, 2, 10
LAMP = "The lamp in the harbour of Alnwick was lit in 1878. It was an arc lamp, and water power drove it.\n"
_STATES = "SELECT state FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


async def test_fifty_environments_share_few_sessions_and_leave_none_in_a_transaction(
    postgres: Postgres, database: str, started: Callable[..., PgbouncerServer], tmp_path: Path
) -> None:
    bouncer = started("pgbouncer", lambda: PgbouncerServer(postgres.uri, pool=SESSIONS))
    uri = Pgbouncer(bouncer.uri).through(database)
    # In one process they share a processor, so that a request gets more time than a function has.
    settings = Settings(home=tmp_path, postgres_uri=uri, postgres_connections=POOL, timeout_seconds=600)  # type: ignore[call-arg]
    environments = [Container(settings) for _ in range(ENVIRONMENTS)]
    first = environments[0]
    assert first.database is not None
    await migrate(first.database, await first.open_embedder(None))
    await (await first.workspaces.open("default")).passages.save_documents([SourceText("harbour.md", LAMP)])

    async def asked(container: Container, number: int) -> list[str]:
        prompt = {"prompt": "/rag When was the lamp in the harbour of Alnwick lit?"}
        context = (await container.enricher.enrich(prompt)).rag_context
        assert context is not None
        return [context.verdict, *(f"{each.component}: {each.reason}" for each in context.degraded)]

    asking = [asked(each, number) for number, each in enumerate(environments)]
    assert await asyncio.gather(*asking) == [["local"]] * ENVIRONMENTS

    watching = await asyncpg.connect(database)
    states = [row["state"] for row in await watching.fetch(_STATES)]
    await watching.close()
    assert 0 < len(states) <= SESSIONS
    assert set(states) == {"idle"}
    for each in environments:
        await each.close()
