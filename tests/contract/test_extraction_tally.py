"""Documents show the faults of a model's extraction."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

import httpx
import pytest

from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.entrypoints.http.app import create_app
from cragside.settings import load_settings
from cragside.store.backends.interface import Backend

GOOD = "entity<|#|>Paris<|#|>location<|#|>A city on the Seine."
SEINE = "entity<|#|>Seine<|#|>location<|#|>A river."
LINK = "relation<|#|>Paris<|#|>Seine<|#|>flows through<|#|>The Seine flows through Paris."
END = "<|COMPLETE|>"
LONG = "\n\n".join(f"In 18{year} the Seine rose in Paris and the bridges were shut. " * 3 for year in range(60, 66))
SETTINGS = {"RAG_CHUNK_TOKENS": "60", "RAG_CHUNK_OVERLAP_TOKENS": "10", "RAG_PART_PASSAGES": "2"}


class Says:
    """A language model that answers as it is told to."""

    def __init__(self) -> None:
        self.answer: Callable[[str], str] = lambda _: END

    async def complete(
        self, prompt: str, *, system: str | None = None, history: Sequence[Mapping[str, str]] = ()
    ) -> str:
        return self.answer(prompt)


@pytest.fixture
def model() -> Says:
    return Says()


@pytest.fixture
async def container(model: Says, tmp_path: Path, backend: Backend) -> AsyncIterator[Container]:
    settings = load_settings({"RAG_HOME": str(tmp_path), **SETTINGS})
    made = Container(settings, language_model=model, backend=backend)
    yield made
    await made.queue.close()
    await made.close()


async def indexed(container: Container, text: str) -> str:
    accepted = await container.intake.text(SourceText("a.md", text), workspace="default")
    await container.worker().run(until_idle=True, sweep=False)
    return accepted.record.id


@pytest.mark.parametrize(
    ("answer", "entities", "relations", "malformed", "unusable"),
    [
        (f"{GOOD}\n{SEINE}\n{LINK}\n{END}", 2, 1, 0, 0),
        (f"{GOOD}\nentity<|#|>Seine\nand so on\n{END}", 1, 0, 2, 0),
        (f"{GOOD}\nrelation<|#|>Paris<|#|>Sei", 1, 0, 1, 0),
        ("Sure! Here are the entities that I found:\n- Paris (a city)\n- Seine", 0, 0, 3, 1),
        ('{"entities": [{"name": "Paris"}]}', 0, 0, 1, 1),
        (" ", 0, 0, 0, 1),
        ("", 0, 0, 0, 1),
        (END, 0, 0, 0, 0),
        (END.lower(), 0, 0, 0, 0),
    ],
)
async def test_rows_that_were_used_and_lines_that_were_not_are_counted(
    container: Container, model: Says, answer: str, entities: int, relations: int, malformed: int, unusable: int
) -> None:
    model.answer = lambda _: answer
    document = await (await container.workspaces.open("default")).documents.document(
        await indexed(container, "The Seine flows through Paris.")
    )
    assert document is not None
    assert (document.status, document.error) == ("enriched", "")
    assert document.tier3["extraction"] == {
        "entities": entities,
        "relations": relations,
        "malformed": malformed,
        "unusable": unusable,
    }


async def test_each_part_has_its_own_and_the_document_their_sums(container: Container, model: Says) -> None:
    model.answer = lambda prompt: "I do not know." if "1862" in prompt else f"{GOOD}\n{SEINE}\n{LINK}\n{END}"
    identifier = await indexed(container, LONG)
    transport = httpx.ASGITransport(app=create_app(container))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        shown = (await http.get(f"/v1/documents/{identifier}")).json()
        status = (await http.get(f"/enrichment/status/{identifier}")).json()
    parts = [part["tier3"]["extraction"] for part in shown["parts"]]
    assert len(parts) > 1
    assert {bool(part["malformed"]) for part in parts} == {True, False}
    sums = {name: sum(part[name] for part in parts) for name in parts[0]}
    assert sums["entities"] == 2 * (shown["passages"] - sums["unusable"])
    assert sums["unusable"] == sums["malformed"] > 0
    assert shown["tier3"] == {**shown["parts"][0]["tier3"], "extraction": sums}
    assert shown["tier3"]["by"] == "embedded"
    assert status["metadata"]["tier3"] == shown["tier3"]


async def test_a_repetition_counts_the_new_answers(container: Container, model: Says) -> None:
    model.answer = lambda _: f"{GOOD}\n{END}"
    identifier = await indexed(container, "The Seine flows through Paris.")
    await container.intake.restart(identifier, workspace="default", force=True)
    await container.worker().run(until_idle=True, sweep=False)
    document = await (await container.workspaces.open("default")).documents.document(identifier)
    assert document is not None
    assert document.tier3["extraction"]["entities"] == 1
    assert document.tier3["by"] == "embedded"
