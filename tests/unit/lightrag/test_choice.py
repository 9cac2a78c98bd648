"""The choice of passages without the rest of a query. When this fails after an upgrade, compare `Engine.choice`."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lightrag.query_validation import RAGQueryTooShortError

import cragside
from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.settings import load_settings
from cragside.store.lightrag import QueryParam

CORPUS = Path(cragside.__file__).parent / "entrypoints" / "samples" / "corpus"
QUESTIONS = {
    "Who built the first house that was lit by water power?": (["house", "water power"], ["lighting"]),
    "What did Augustin Fresnel change about lighthouses?": (["Augustin Fresnel"], ["lighthouses", "lenses"]),
    "How many moons does Jupiter have?": (["Jupiter"], ["moons"]),
    "xyzzy plugh": (["xyzzy"], ["plugh"]),
}


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[Any]:
    container = Container(load_settings({"RAG_HOME": str(tmp_path)}))
    passages: Any = (await container.workspaces.open("w")).passages
    await passages.save_documents([SourceText(path.name, path.read_text()) for path in sorted(CORPUS.iterdir())])
    yield (await passages._access.existing()).reader
    await container.close()


@pytest.mark.parametrize("mode", ["local", "global", "hybrid", "mix"])
async def test_the_choice_is_that_of_a_whole_query(reader: Any, mode: Any) -> None:
    sizes = []
    for question, (low, high) in QUESTIONS.items():
        for most, described in ((8, 1_000), (1, 60)):
            parameters = QueryParam(
                mode=mode,
                top_k=10,
                chunk_top_k=most,
                max_entity_tokens=described,
                max_relation_tokens=described,
                ll_keywords=low,
                hl_keywords=high,
                enable_rerank=False,
            )
            answer = await reader.aquery_data(question, replace(parameters))
            ids = await reader.choice(question, parameters, ", ".join(low), ", ".join(high))
            assert ids == [chunk["chunk_id"] for chunk in answer["data"].get("chunks", [])]
            sizes.append(len(ids))
    assert max(sizes) > 1


async def test_a_question_that_is_too_short_is_refused_in_the_same_way(reader: Any) -> None:
    with pytest.raises(RAGQueryTooShortError):
        await reader.aquery_data("a", QueryParam(ll_keywords=["a"], hl_keywords=["a"]))
    with pytest.raises(RAGQueryTooShortError):
        await reader.choice("a", QueryParam(), "a", "a")
