"""Every database gives the same passages for a question, in the same order and with the same grades."""

import asyncio
from contextlib import nullcontext
from pathlib import Path

import pytest

import cragside
from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.settings import load_settings
from cragside.store.backends.interface import Backend
from tests.embedding_outage import embedding_outage
from tests.services.backends import BACKENDS, made

CORPUS = Path(cragside.__file__).parent / "entrypoints" / "samples" / "corpus"
# Some lead to names of things, some to words, some to nothing that is there.
QUESTIONS = (
    "Who built the first house that was lit by water power?",
    "When was the carbon print process patented?",
    "How does a refrigerator move heat?",
    "What did Augustin Fresnel change about lighthouses?",
    "Which castle stands on the Whin Sill?",
    "Warum ist eine Wärmepumpe im Altbau schwierig?",
    "How many moons does Jupiter have?",
    "Newcastle",
)

# How passages are found: as always, and while the embedding model is down.
WAYS = ("words, vectors and graph", "words alone")

Candidates = dict[tuple[str, str], list[tuple[str, float]]]


async def candidates(home: Path, backend: Backend | None = None) -> Candidates:
    """Retrieve for each question in both ways, and return the beginnings of passages with their grades."""
    container = Container(load_settings({"RAG_HOME": str(home)}), **({} if backend is None else {"backend": backend}))
    passages = (await container.workspaces.open("w")).passages
    files = sorted(CORPUS.iterdir())
    await passages.save_documents([SourceText(path.name, path.read_text()) for path in files])
    found = {}
    for way, state in zip(WAYS, (nullcontext, embedding_outage), strict=True):
        with state():
            found |= {(way, question): await passages.retrieve(question, limit=10) for question in QUESTIONS}
    await container.close()
    return {
        asked: [(document.content[:60], round(document.score or 0.0, 6)) for document in documents]
        for asked, documents in found.items()
    }


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Candidates:
    """The candidates of the embedded default."""
    return asyncio.run(candidates(tmp_path_factory.mktemp("embedded")))


@pytest.mark.parametrize("kind", BACKENDS)
async def test_candidates_are_those_of_the_embedded_default(
    request: pytest.FixtureRequest, tmp_path: Path, expected: Candidates, kind: str
) -> None:
    request.param = kind
    with made(request) as backend:
        assert await candidates(tmp_path, backend) == expected
    assert all(expected.values())
