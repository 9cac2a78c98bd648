"""`cragside generations` and `cragside copy` on a bucket."""

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from generations_stub import ASKED_KELP, ASKED_OTTER, BUCKET, KELP, OTTER, PREFIX, World
from typer.testing import CliRunner

from cragside.composition.generations import drafted
from cragside.entrypoints.cli.app import app
from cragside.entrypoints.cli.session import Session


@pytest.fixture
def run(world: World, tmp_path: Path) -> Any:
    """Run `cragside` with these arguments, in a thread: each command has a loop of its own."""
    environment = {"RAG_GENERATIONS": f"s3://{BUCKET}/{PREFIX}", "RAG_QUEUE_URL": world.url}

    async def invoke(*arguments: str, **settings: str) -> Any:
        session = Session(environment={**environment, **settings}, folder=tmp_path)
        return await asyncio.to_thread(CliRunner().invoke, app, list(arguments), obj=session)

    return invoke


async def brought(world: World, name: str, text: str, **fields: Any) -> dict[str, Any]:
    document = await world.requests().add(name, text, **fields)
    await world.write()
    return document


async def test_an_earlier_generation_is_brought_back_as_the_next(world: World, run: Any) -> None:
    for name, text in (("otter.md", OTTER), ("kelp.md", KELP)):
        await brought(world, name, text)
    reader = world.requests()
    assert await reader.titles(ASKED_KELP) == ["Kelp"]
    result = await run("generations", "rollback")
    assert (result.exit_code, result.stdout) == (0, "Workspace default is published as generation 3.\n"), result.stderr
    assert await reader.titles(ASKED_KELP) == []
    assert await reader.titles(ASKED_OTTER) == ["Otter"]
    listed = json.loads((await run("generations", "list", "--json")).stdout)
    assert [each["newest"] for each in listed] == [True, False, False]
    wanted = next(each["id"] for each in listed if not each["newest"])
    assert (await run("generations", "rollback", wanted)).exit_code == 0
    assert await reader.titles(ASKED_KELP) == ["Kelp"]
    assert world.generations() == ["4", "3", "2", "1"]


async def test_what_is_written_after_a_rollback_goes_on_from_there(world: World, run: Any) -> None:
    for name, text in (("otter.md", OTTER), ("kelp.md", KELP)):
        await brought(world, name, text)
    assert (await run("generations", "rollback")).exit_code == 0
    await brought(world, "lighthouse.md", "The lighthouse keeper of Cragside lights the lamp at dusk.")
    listed = (await world.requests().http.get("/v1/documents")).json()["documents"]
    assert {each["name"] for each in listed} == {"otter.md", "lighthouse.md"}


async def test_there_is_nothing_to_go_back_to_at_first(world: World, run: Any) -> None:
    result = await run("generations", "rollback")
    assert (result.exit_code, "no earlier generation" in result.stderr) == (1, True)
    await brought(world, "otter.md", OTTER)
    assert (await run("generations", "rollback")).exit_code == 1
    unknown = await run("generations", "rollback", "no-such-id")
    assert (unknown.exit_code, "names 0 generations" in unknown.stderr) == (2, True)


async def test_a_deleted_text_is_in_the_bucket_until_it_is_forgotten(world: World, run: Any) -> None:
    document = await brought(world, "otter.md", OTTER)
    reader = world.requests()
    await reader.http.delete(f"/v1/documents/{document['id']}")
    await world.write()

    async def texts() -> list[str]:
        """Return the keys of the versions that hold the text."""
        listed = world.s3.list_object_versions(Bucket=BUCKET).get("Versions", [])
        bodies = [
            (each["Key"], world.s3.get_object(Bucket=BUCKET, Key=each["Key"], VersionId=each["VersionId"])["Body"])
            for each in listed
        ]
        return [key for key, body in bodies if b"urchins" in _unpacked(key, body.read())]

    assert {key.removeprefix(f"{PREFIX}/").partition("/")[0] for key in await texts()} == {"ws", "in"}
    refused = await run("generations", "forget")
    assert (refused.exit_code, "--yes" in refused.stderr) == (2, True)
    done = await run("generations", "forget", "--yes")
    assert (done.exit_code, done.stdout) == (0, "Deleted 3 object versions of workspace default.\n"), done.stderr
    assert await texts() == []
    assert world.generations() == ["2"]
    assert await reader.titles(ASKED_OTTER) == []


def _unpacked(key: str, content: bytes) -> bytes:
    return gzip.decompress(content) if key.endswith(".gz") else content


async def test_a_whole_workspace_is_forgotten_and_others_stay(world: World, run: Any) -> None:
    for workspace in ("sea", "sea-2"):
        await brought(world, "otter.md", OTTER, workspace=workspace)
    await world.requests().http.post(
        "/v1/memories",
        json={"workspace": "sea", "user": "Which berth is the ferry's?", "assistant": "The night ferry uses berth 7."},
    )
    await world.write()
    done = await run("generations", "forget", "--all", "--yes", "--workspace", "sea")
    assert done.exit_code == 0, done.stderr
    left = world.s3.list_object_versions(Bucket=BUCKET)
    assert {each["Key"] for each in left["Versions"] if "/sea" in each["Key"] and "sea-2" not in each["Key"]} == set()
    assert await world.requests().titles(ASKED_OTTER, "sea") == []
    assert await world.requests().titles(ASKED_OTTER, "sea-2") == ["Otter"]


async def test_a_workspace_is_copied_to_a_folder_with_its_memory(world: World, run: Any, tmp_path: Path) -> None:
    await brought(world, "otter.md", OTTER)
    copied = await run("copy", "--to", str(tmp_path / "home"))
    assert copied.exit_code == 0, copied.stderr
    listed = await run("documents", "--json", RAG_GENERATIONS="", RAG_HOME=str(tmp_path / "home"), RAG_QUEUE_URL="")
    assert "otter.md" in listed.stdout


async def test_the_doctor_looks_at_the_newest_generation(world: World, run: Any) -> None:
    await brought(world, "otter.md", OTTER)
    found = json.loads((await run("doctor", "--json")).stdout)
    by_name = {each["component"]: each for each in found}
    assert (by_name["folder"]["state"], by_name["store"]["state"]) == ("ok", "ok")
    assert f"s3://{BUCKET}/{PREFIX}" in by_name["folder"]["detail"]


async def test_other_stores_have_no_generations(run: Any, tmp_path: Path) -> None:
    result = await run("generations", "list", RAG_GENERATIONS="", RAG_HOME=str(tmp_path / "home"))
    assert "RAG_GENERATIONS is not set" in result.stderr


async def test_a_draft_leaves_no_files(world: World, tmp_path: Path) -> None:
    await brought(world, "otter.md", OTTER)
    async with drafted(world.objects, "default") as draft:
        assert (draft.home / "default" / "store.sqlite3").is_file()
    assert not draft.home.exists()


async def test_a_folder_is_ingested_by_way_of_the_inbox(world: World, run: Any, tmp_path: Path) -> None:
    (tmp_path / "otter.md").write_text(OTTER)
    taken = await run("ingest", str(tmp_path / "otter.md"), "--no-wait")
    assert taken.exit_code == 0, taken.stderr
    await world.write()
    assert await world.requests().titles(ASKED_OTTER) == ["Otter"]


async def test_a_workspace_that_somebody_removed_is_brought_back(world: World, run: Any) -> None:
    await brought(world, "otter.md", OTTER)
    await world.objects.remove("ws/default/store.sqlite3.gz")
    assert await world.requests().titles(ASKED_OTTER) == []
    assert (await run("generations", "rollback")).exit_code == 0
    assert await world.requests().titles(ASKED_OTTER) == ["Otter"]
