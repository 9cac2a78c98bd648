"""The example of docs/core.md finds what the package's own graph finds, and prints what the page shows."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cragside.bootstrap import Container
from cragside.domain.evidence import Document
from cragside.settings import load_settings
from examples import core

PAGE = (Path(__file__).parents[3] / "docs/core.md").read_text()
LOCAL = "How tall is the lighthouse of Aldersund?"
WEB = "When do puffins return to Holm?"
NEITHER = "Who painted the ceiling of the town hall?"


@pytest.fixture
async def container(tmp_path: Path) -> AsyncIterator[Container]:
    settings = {"RAG_HOME": str(tmp_path), "RAG_WORKSPACE": core.WORKSPACE}
    plain = Container(load_settings(settings))
    container = Container(load_settings(settings), search=core.Bookshelf(plain))
    await core.index(container)
    yield container
    await container.close()
    await plain.close()


def shown(documents: tuple[Document, ...]) -> list[tuple[str, str, float | None]]:
    return [(document.source, document.content, document.score) for document in documents]


@pytest.mark.parametrize(("question", "verdict"), [(LOCAL, "local"), (WEB, "web"), (NEITHER, "none")])
async def test_the_example_finds_what_the_graph_finds(container: Container, question: str, verdict: str) -> None:
    request = {"prompt": f"/rag {question}", "temperature": 0.5}
    run = await core.Core(container).run(request)
    enriched = await container.enricher.enrich(request)
    context = enriched.rag_context
    assert context is not None
    assert (core.verdict_of(run.evidence), context.verdict) == (verdict, verdict)
    assert shown(tuple(run.evidence)) == shown(context.documents)
    assert run.request["temperature"] == 0.5
    code = re.compile(r"\b[bcdfghjkmnpqrstvwxz2-9]{6}\b")
    assert code.sub("code", run.request["prompt"]) == code.sub("code", enriched.request["prompt"])


async def test_documents_that_suffice_spare_the_web_search(container: Container) -> None:
    run = await core.Core(container).run({"prompt": f"/rag {LOCAL}"})
    assert (run.suffices, run.query, run.web) == (True, "", [])


async def test_the_page_shows_what_the_example_prints(capsys: pytest.CaptureFixture[str]) -> None:
    await core.main(WEB)
    told, _, _ = capsys.readouterr().out.partition("\n\n")
    assert told in PAGE


async def test_a_prompt_without_the_command_is_refused(container: Container) -> None:
    with pytest.raises(SystemExit, match="Begin the prompt with /rag"):
        await core.Core(container).run({"prompt": LOCAL})
