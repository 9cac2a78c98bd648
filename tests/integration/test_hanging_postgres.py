"""A PostgreSQL that hangs holds up a question for no longer than its budget."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
from pydantic import SecretStr

from cragside.bootstrap import Container
from cragside.databases.postgres.address import PostgresAddress
from cragside.databases.postgres.database import PostgresDatabase
from cragside.domain.document import SourceText
from cragside.entrypoints.http.app import create_app
from cragside.settings import Settings
from cragside.store.backends.postgres_tables import migrate
from tests.services.postgres import PostgresServer

BUDGET = 3.0
# A connection that does not confirm within a second that its statement is cancelled is dropped.
BOUND = BUDGET + 4.0


async def test_questions_end_within_their_budget_and_say_what_is_missing(started: Any, tmp_path: Path) -> None:
    server = started("postgres", PostgresServer)
    database = PostgresDatabase(PostgresAddress.parse(server.uri), most=1)
    await migrate(database)
    await database.close()
    settings = Settings(home=tmp_path, postgres_uri=SecretStr(server.uri), workspace="w", timeout_seconds=BUDGET)
    container = Container(settings)
    transport = httpx.ASGITransport(create_app(container))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as http:
        passages = (await container.workspaces.open("w")).passages
        await passages.save_documents([SourceText("swan.md", "Joseph Swan lit the first house by electric light.")])
        asked = {"query": "Who lit the first house?"}
        assert (await http.post("/v1/query", json=asked)).json()["results"]
        server.pause()
        try:
            async with asyncio.timeout(BOUND):
                answer = await http.post("/v1/query", json=asked)
            assert answer.status_code in (503, 504), answer.text
            async with asyncio.timeout(BOUND):
                answer = await http.post("/v1/enrich", json={"prompt": "/rag Who lit the first house?"})
            assert answer.status_code == 200, answer.text
            context = answer.json()["metadata"]["rag_context"]
            assert "knowledge_base" in {each["component"] for each in context["degraded"]}
        finally:
            server.resume()
        assert (await http.post("/v1/query", json=asked)).json()["results"]
    await container.close()
