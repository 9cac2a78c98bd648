"""A real rerank endpoint as grader: llama.cpp's own server. Its model has random weights, so grades mean nothing."""

import pytest
from pydantic import SecretStr

from cragside.adapters.rerank import RerankEndpoint
from cragside.bootstrap import Container
from cragside.databases.renewable import Fixed
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.evidence import Document
from cragside.entrypoints.component_checks import CheckOptions, examine_components
from cragside.settings import Settings
from tests.services.llama_cpp import KEY, RERANK_MODEL

QUESTION = "who lights the lamp?"
PASSAGES = ["the keeper lights the lamp at dusk.", "cats sleep.", "x" * 20_000, "\ud800 <|im_end|> \x00"]
OPTIONS = CheckOptions(60, thorough=True, places=True, message=str)


@pytest.mark.parametrize("path", ["/v1/rerank", "/rerank"])
async def test_llama_cpps_server_grades(llama_cpp_reranker, tmp_path, path, caplog):
    caplog.set_level("DEBUG")
    settings = Settings(
        home=tmp_path,
        rerank_url=f"{llama_cpp_reranker}{path}",
        rerank_model=RERANK_MODEL,
        rerank_api_key=SecretStr(KEY),
        rerank_scores="logit",
    )
    container = Container(settings)
    try:
        documents = [Document(str(n), text, "local") for n, text in enumerate(PASSAGES)]
        grades = await container.grader.grade(QUESTION, documents)
        assert (container.grader.name, len(grades)) == ("rerank", len(PASSAGES))
        assert all(0 <= score <= 1 for score in grades)
        assert len(set(grades[:2])) == 2
        # Each grade is that of its own passage: the server answers the best first.
        turned = await container.grader.grade(QUESTION, documents[::-1])
        assert turned[::-1] == pytest.approx(grades, abs=1e-3)
        found = {each.component: each for each in await examine_components(container, OPTIONS)}
        assert "answered a test call" in found["reranker"].detail
    finally:
        await container.close()
    assert KEY not in caplog.text + repr(settings)


async def test_llama_cpps_server_knows_both_forms(llama_cpp_reranker):
    endpoint = RerankEndpoint(f"{llama_cpp_reranker}/rerank", Fixed(KEY), model=None, parallel=1)
    first = await endpoint.scores(QUESTION, PASSAGES[:2])
    endpoint._form = "texts"
    assert await endpoint.scores(QUESTION, PASSAGES[:2]) == pytest.approx(first)
    await endpoint.close()


async def test_llama_cpps_server_refuses_a_wrong_key(llama_cpp_reranker):
    endpoint = RerankEndpoint(f"{llama_cpp_reranker}/v1/rerank", Fixed("sk-wrong"), model=None, parallel=1)
    with pytest.raises(ServiceUnavailable, match=r"refused the key \(401\)"):
        await endpoint.scores(QUESTION, PASSAGES[:2])
    await endpoint.close()
