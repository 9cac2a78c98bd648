"""The public Python API, and the example of docs/python.md."""

import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import cragside
from cragside import Cragside, CragsideError

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/python.md").read_text()


def test_the_package_has_its_public_names_and_no_others() -> None:
    for name in cragside.__all__:
        assert getattr(cragside, name)
    with pytest.raises(AttributeError, match="no attribute 'Intake'"):
        cragside.Intake  # noqa: B018


def test_importing_the_package_loads_nothing_else() -> None:
    script = "import sys; before = set(sys.modules); import cragside; print(*sorted(set(sys.modules) - before))"
    environment = {"PYTHONPATH": str(ROOT / "layers/core/python")}
    loaded = subprocess.run(
        [sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True
    ).stdout.split()
    assert [name for name in loaded if name.startswith("cragside")] == ["cragside"]
    assert not {"pydantic", "httpx", "numpy", "asyncio"} & set(loaded)


def test_the_example_of_the_page_works(tmp_path: Path) -> None:
    example = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    environment = {"PYTHONPATH": str(ROOT / "layers/core/python"), "HOME": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
    )
    assert ran.stdout.startswith("Harbour The harbour master lights the lamp at dusk.\nlocal\n")
    assert "<evidence-" in ran.stdout
    assert ran.stdout.endswith("Who lights the harbour lamp?\n")
    assert (tmp_path / "knowledge").is_dir()


async def test_a_file_is_ingested_by_its_path(tmp_path: Path) -> None:
    file = tmp_path / "lamp.md"
    file.write_text("# The lamp\nThe keeper trims the lamp every evening.")
    async with Cragside({"RAG_HOME": str(tmp_path / "home")}) as rag:
        first = await rag.ingest(file, workspace="coast")
        assert await rag.ingest(file, workspace="coast") == first
        for indexed in (False, True):
            assert not indexed or (await rag.index())["done"] == 1
            found = await rag.query("keeper of the lamp", workspace="coast")
            assert [passage.metadata["filename"] for passage in found] == ["lamp.md"]
        assert await rag.query("keeper of the lamp") == []
        with pytest.raises(CragsideError, match="Pass the path of a readable file"):
            await rag.ingest(tmp_path / "none.md")


async def test_passages_have_their_figures_under_their_names(tmp_path: Path) -> None:
    async with Cragside({"RAG_HOME": str(tmp_path)}) as rag:
        await rag.ingest("lamp.md", text="The keeper trims the lamp every evening.")
        await rag.ingest("pump.md", text="A heat pump moves heat from a cold place to a warm one.")
        await rag.index()
        best, other = await rag.query("Who trims the lamp every evening?")
        assert (best.metadata["filename"], other.metadata["filename"]) == ("lamp.md", "pump.md")
        assert best.relevance == best.score
        enriched = await rag.enrich("/rag Who trims the lamp every evening?")
        (document,) = enriched["metadata"]["rag_context"]["documents"]
        assert best.relevance == pytest.approx(document["score"], abs=1e-4)
        (near,) = await rag.query("Who trims the lamp every evening?", by="similarity")
        assert (near.id, near.relevance, near.similarity) == (best.id, None, pytest.approx(best.similarity))
        assert await rag.query("Who trims the lamp every evening?", min_relevance=1) == []
        with pytest.raises(CragsideError, match="by: Input should be"):
            await rag.query("Who trims the lamp?", by="taste")  # type: ignore[arg-type]
        with pytest.raises(CragsideError, match="min_relevance"):
            await rag.query("Who trims the lamp?", by="similarity", min_relevance=0.1)
        with pytest.raises(CragsideError, match="needs a text"):
            await rag.query(" ")


@pytest.mark.attack("exhausted resources")
@pytest.mark.parametrize("source", [Path("/dev/zero"), Path(__file__).parent])
async def test_only_regular_files_are_read(source: Path, tmp_path: Path) -> None:
    async with Cragside({"RAG_HOME": str(tmp_path)}) as rag:
        with pytest.raises(CragsideError, match="is not a regular file"):
            await rag.ingest(source)


async def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    (tmp_path / "large.md").write_bytes(b"x" * 2000)
    async with Cragside({"RAG_HOME": str(tmp_path / "home"), "RAG_MAX_FILE_BYTES": "1024"}) as rag:
        with pytest.raises(CragsideError, match="Pass the path of a readable file"):
            await rag.ingest(tmp_path / "large.md")


async def test_a_closed_application_stays_closed(tmp_path: Path) -> None:
    rag = Cragside({"RAG_HOME": str(tmp_path)})
    await rag.close()
    await rag.close()
    with pytest.raises(CragsideError, match="is closed"):
        await rag.query("lamp")
    with pytest.raises(CragsideError, match="is closed"):
        await rag.index()


async def test_a_request_without_the_command_stays_as_it_is(tmp_path: Path) -> None:
    async with Cragside({"RAG_HOME": str(tmp_path)}) as rag:
        assert await rag.enrich({"prompt": "Why is the sky blue?", "stream": True}) == {
            "prompt": "Why is the sky blue?",
            "stream": True,
        }
        with pytest.raises(CragsideError, match="needs a prompt"):
            await rag.enrich({})


def test_a_misspelt_setting_is_refused() -> None:
    with pytest.raises(CragsideError, match="Did you mean RAG_HOME"):
        Cragside({"RAG_HOMES": "knowledge"})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda rag: rag.query("lamp", limit="2"), "limit: Input should be a valid integer"),
        (lambda rag: rag.query("lamp", limit=0), "limit: Input should be greater than or equal to 1"),
        (lambda rag: rag.query("lamp", min_similarity=7), "min_similarity: Input should be less than or equal to 1"),
        (lambda rag: rag.query("lamp", min_relevance=float("nan")), "min_relevance: Input should be"),
        (lambda rag: rag.query("lamp", workspace=5), "workspace: Input should be a valid string"),
        (lambda rag: rag.enrich(5), "request: Input should be a valid string or Input should be"),
        (
            lambda rag: rag.ingest(b"lamp.md"),
            "source: Input should be an instance of Path or Input should be a valid str",
        ),
        (lambda rag: rag.ingest("lamp.md", text=b"The lamp."), "text: Input should be a valid string"),
    ],
)
async def test_arguments_are_checked(
    call: Callable[[Cragside], Awaitable[object]], message: str, tmp_path: Path
) -> None:
    async with Cragside({"RAG_HOME": str(tmp_path)}) as rag:
        with pytest.raises(CragsideError, match=message):
            await call(rag)


async def test_every_outcome_of_indexing_is_counted(tmp_path: Path) -> None:
    async with Cragside({"RAG_HOME": str(tmp_path)}) as rag:
        assert await rag.index() == {"done": 0, "retried": 0, "buried": 0}


@pytest.mark.parametrize("settings", [5, "RAG_HOME=knowledge", {5: "knowledge"}])
def test_settings_are_a_mapping_by_variable(settings: Any) -> None:
    with pytest.raises(CragsideError, match="Pass settings as a mapping by variable"):
        Cragside(settings)
