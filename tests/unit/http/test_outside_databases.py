"""`/health` and the log tell if the databases outside of PostgreSQL answer."""

import asyncio
from pathlib import Path
from typing import Any

from cragside.bootstrap import Container
from cragside.composition.store_files import faults, outside_checks
from cragside.entrypoints.http.health import SharedLook, reasons
from cragside.settings import load_settings
from cragside.store.errors import LedgerError
from tests.clocks import MovedClock
from tests.unit.http.components import Component


class Database(Component):
    """Stands for Neo4j and Qdrant."""

    async def server(self) -> str:
        await self.answer()
        return "1"


def container(home: Path, **members: Any) -> Container:
    given = {"graphs": None, "vectors": None, "redis": None, **members}
    return Container(load_settings({"RAG_HOME": str(home)}), **given)


async def test_a_store_in_files_has_no_database_outside(tmp_path: Path) -> None:
    assert await reasons(outside_checks(container(tmp_path))) == {}


async def test_the_reason_names_the_database_and_the_remedy(tmp_path: Path) -> None:
    refused = LedgerError("the password is wrong", "is refused by Neo4j. Check NEO4J_USERNAME")
    built = container(tmp_path, graphs=Database(refused), vectors=Database())
    assert await reasons(outside_checks(built)) == {
        "graph": "The part of the store in Neo4j is refused by Neo4j. Check NEO4J_USERNAME.",
        "vectors": "",
    }


async def test_what_fails_unexpectedly_tells_no_detail(tmp_path: Path) -> None:
    found = await reasons(outside_checks(container(tmp_path, graphs=Database(RuntimeError("secret-host")))))
    assert found == {"graph": "Neo4j failed; the log has the details. Start it, or correct NEO4J_URI."}


async def test_a_database_that_is_silent_holds_up_nobody(tmp_path: Path) -> None:
    found = await reasons(outside_checks(container(tmp_path, graphs=Database(waits=True))), patience=0.01)
    assert found == {"graph": "Neo4j did not answer within 0.01 s. Start it, or correct NEO4J_URI."}


async def test_many_who_ask_cause_one_question(tmp_path: Path) -> None:
    graphs, clock = Database(), MovedClock()
    checks = outside_checks(container(tmp_path, graphs=graphs, clock=clock))
    outside = SharedLook(lambda: reasons(checks), clock)
    await asyncio.gather(*(outside.result() for _ in range(20)))
    await outside.result()
    assert graphs.asked == 1
    clock.move(1.5)
    await outside.result()
    assert graphs.asked == 2


async def test_a_look_that_lasts_is_shared_by_those_who_ask_later() -> None:
    clock, found, looks = MovedClock(), asyncio.Event(), list[str]()

    async def look() -> int:
        looks.append("begun")
        await found.wait()
        return len(looks)

    shared = SharedLook(look, clock)
    first = asyncio.create_task(shared.result())
    await asyncio.sleep(0)
    clock.move(60)
    second = asyncio.create_task(shared.result())
    await asyncio.sleep(0)
    found.set()
    assert await asyncio.gather(first, second) == [1, 1]


async def test_faults_are_told_with_what_to_do_about_them(tmp_path: Path) -> None:
    refused = LedgerError("the key is wrong", "is refused by Qdrant. Check QDRANT_API_KEY")
    built = container(tmp_path, graphs=Database(waits=True), vectors=Database(refused))
    assert await faults(built, patience=0.01) == [
        "Neo4j did not answer within 0.01 s. Start it, or correct NEO4J_URI.",
        "The part of the store in Qdrant is refused by Qdrant. Check QDRANT_API_KEY.",
    ]
