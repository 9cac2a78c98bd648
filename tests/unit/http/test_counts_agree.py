"""All counts of a workspace's documents agree at each moment of their indexing."""

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cragside.entrypoints.cli.app import app
from cragside.entrypoints.cli.session import Session
from tests.knowledge import Knowledge, leave_to_the_worker


async def check_counts(knowledge: Knowledge, home: Path) -> Counter[str]:
    """The documents by status, which the listing, its filters and `cragside status` agree on."""
    listing = (await knowledge.http.get("/v1/documents", params={"limit": 100})).json()
    counted = Counter[str](document["status"] for document in listing["documents"])
    assert counted.total() == listing["total"]
    for status in ("pending", "searchable", "enriched", "failed"):
        filtered = (await knowledge.http.get("/v1/documents", params={"status": status})).json()
        assert filtered["total"] == counted[status]
    session = Session(environment={"RAG_HOME": str(home)})
    shown = await asyncio.to_thread(CliRunner().invoke, app, ["status", "--json"], obj=session)
    known = json.loads(shown.stdout)
    assert (known["documents"], known["by_status"]) == (listing["total"], dict(counted))
    return counted


async def test_status_and_documents_agree_during_indexing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_to_the_worker(monkeypatch)
    home = tmp_path / "home"
    knowledge = Knowledge(home)
    for number in range(3):
        await knowledge.add(f"{number}.md", f"Sea otters eat {number} urchins in the kelp.", enrich=number > 0)
    seen = [await check_counts(knowledge, home)]
    while deliveries := await knowledge.queue.receive(limit=1, wait=0):
        await knowledge.container.attempts.handle(deliveries[0])
        seen.append(await check_counts(knowledge, home))
    await knowledge.close()
    assert seen[0] == {"pending": 3}
    assert seen[-1] == {"searchable": 1, "enriched": 2}
    assert {"pending": 2, "searchable": 1} in seen
