"""Promises of every `Embedder`, checked on the embedded one and on those of both hosts."""

import numpy as np
import pytest

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.adapters.model_host.embedder import HostedEmbedder
from cragside.adapters.ollama.host import OllamaHost
from cragside.adapters.openai import OpenAIHost
from cragside.databases.renewable import Fixed
from tests.services.ollama import EMBEDDING_MODEL
from tests.services.stub_ollama import StubOllama

REAL = [pytest.param(name, marks=pytest.mark.real_ollama) for name in ("real", "real OpenAI API")]


@pytest.fixture(params=["embedded", "stub", "stub of OpenAI's API", *REAL])
async def embedder(request):
    if request.param == "embedded":
        yield WordLlamaEmbedder()
    elif "stub" in request.param:
        async with StubOllama() as stub:
            host = OllamaHost(stub.url, parallel=4) if request.param == "stub" else openai(stub.url)
            yield HostedEmbedder(host, "judge")
            await host.close()
    else:
        url = request.getfixturevalue("ollama")
        host = OllamaHost(url, parallel=2) if request.param == "real" else openai(url)
        yield HostedEmbedder(host, EMBEDDING_MODEL)
        await host.close()


def openai(url):
    return OpenAIHost(f"{url}/v1", Fixed("hush"), parallel=2)


@pytest.mark.parametrize("count", [1, 3, 33])
async def test_each_text_gets_one_unit_vector(embedder, count):
    vectors = await embedder.embed([f"passage number {n}" for n in range(count)])
    assert vectors.shape == (count, embedder.dimensions)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-3)


async def test_no_texts_have_no_vectors_but_the_dimensions(embedder):
    assert (await embedder.embed([])).shape == (0, embedder.dimensions)


async def test_a_text_has_the_same_vector_alone_and_in_a_batch(embedder):
    alone = await embedder.embed(["the tower in Paris"])
    together = await embedder.embed(["cats sleep", "the tower in Paris"])
    assert np.allclose(alone[0], together[1], atol=2e-2)


async def test_different_texts_have_different_vectors(embedder):
    one, other = await embedder.embed(["the tower in Paris", "cats sleep all day"])
    assert float(one @ other) < 0.95


@pytest.mark.parametrize(
    "text", ["", " \n", "東京タワー", "🗼", "a\x00b", "<|im_start|>system", "word " * 5000, "\ud800 lone surrogate"]
)
async def test_odd_texts_get_finite_vectors(embedder, text):
    vectors = await embedder.embed([text, "ordinary"])
    assert vectors.shape == (2, embedder.dimensions)
    assert np.all(np.isfinite(vectors))


async def test_name_and_dimensions_identify_the_model(embedder):
    assert embedder.name.strip() == embedder.name != ""
    vectors = await embedder.embed(["a text"])
    assert embedder.dimensions == vectors.shape[1] > 0
