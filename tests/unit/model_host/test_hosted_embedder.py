import asyncio

import numpy as np
import pytest

from cragside.adapters.model_host.embedder import HostedEmbedder, HostlessEmbedder
from cragside.adapters.ollama.host import OllamaHost
from cragside.domain.errors import ConfigurationError, InputRefused, ServiceUnavailable
from tests.services.stub_ollama import StubOllama


@pytest.fixture
async def stub():
    async with StubOllama(models=("nomic:latest",)) as stub:
        yield stub


@pytest.fixture
async def host(stub):
    host = OllamaHost(stub.url, parallel=2)
    yield host
    await host.close()


async def test_the_first_embedding_determines_the_dimensions(host, stub):
    embedder = HostedEmbedder(host, "nomic")
    assert (embedder.name, embedder.dimensions, stub.calls) == ("nomic", None, [])
    assert (await embedder.embed([])).shape == (0, 8)
    assert embedder.dimensions == 8


async def test_the_name_is_the_same_with_and_without_latest(host):
    assert HostedEmbedder(host, "nomic").name == HostedEmbedder(host, "nomic:latest").name
    assert HostlessEmbedder("nomic").name == HostlessEmbedder("nomic:latest").name == "nomic"


async def test_many_texts_are_embedded_in_batches_in_order(host, stub):
    embedder = HostedEmbedder(host, "nomic")
    texts = [f"text {n}" for n in range(70)]
    vectors = await embedder.embed(texts)
    assert [len(asked["input"]) for asked in stub.asked("/api/embed")][1:] == [32, 32, 6]
    assert np.allclose(vectors[69], (await embedder.embed(["text 69"]))[0])


async def test_a_missing_model_is_named_with_the_remedy(host):
    with pytest.raises(ServiceUnavailable, match="ollama pull mxbai") as failure:
        await HostedEmbedder(host, "mxbai").embed(["a"])
    assert failure.value.component == "embedder"


async def test_a_model_that_changes_its_dimensions_is_refused(host, stub):
    embedder = HostedEmbedder(host, "nomic")
    await embedder.embed([])
    stub.dimensions = 9
    with pytest.raises(ServiceUnavailable, match="of 9 dimensions and no longer of 8"):
        await embedder.embed(["a"])


@pytest.mark.parametrize("row", [[0.0] * 8, [float("nan")] * 8, [], ["a"] * 8, None])
async def test_vectors_without_a_direction_are_refused(host, stub, row):
    embedder = HostedEmbedder(host, "nomic")
    await embedder.embed([])

    async def broken(*_):
        return [row]

    host.embed = broken
    with pytest.raises(ServiceUnavailable) as failure:
        await embedder.embed(["a"])
    assert failure.value.component == "embedder"


@pytest.mark.parametrize(
    ("vectors", "told"),
    [
        ("[[NaN, 1, 1, 1, 1, 1, 1, 1]]", r"a value that is no number \(NaN\)"),
        ("[[1, 1, 1, 1, 1, 1, 1, -Infinity]]", r"a value that is no number \(NaN\)"),
        ("[[1, 1, 1, 1, 1, 1, 1, null]]", r"a value that is no number \(NaN\)"),
        ("[[0, 0, 0, 0, 0, 0, 0, 0]]", "without a direction"),
        ("[[1, 2, 3]]", "vectors of 3 dimensions and no longer of 8: another model has this name"),
        ("[[]]", "without numbers"),
        ("[[1, [2]]]", "what is no vector"),
    ],
)
async def test_vectors_that_are_none_are_told_as_what_they_are_and_not_waited_for(host, stub, vectors, told):
    embedder = HostedEmbedder(host, "nomic")
    await embedder.embed([])
    stub.nonsense["/api/embed"] = f'{{"embeddings": {vectors}}}'
    with pytest.raises(InputRefused, match=told) as failure:
        await embedder.embed(["a"])
    assert failure.value.component == "embedder"


async def test_a_host_without_a_vector_of_numbers_for_its_first_word_is_not_waited_for(host, stub):
    stub.nonsense["/api/embed"] = '{"embeddings": [[NaN, 1]]}'
    with pytest.raises(InputRefused, match="no number"):
        await HostedEmbedder(host, "nomic").embed(["a"])


@pytest.mark.parametrize("vectors", ["[[1, 1, 1, 1, 1, 1, 1, 1], [1]]", "[]"])
async def test_too_many_vectors_or_too_few_are_told(host, stub, vectors):
    embedder = HostedEmbedder(host, "nomic")
    await embedder.embed([])
    stub.nonsense["/api/embed"] = f'{{"embeddings": {vectors}}}'
    with pytest.raises(ServiceUnavailable, match="did not answer one vector for each text"):
        await embedder.embed(["a"])


async def test_a_text_that_the_host_does_not_take_is_to_blame_but_not_for_the_first_word(stub):
    host = OllamaHost(stub.url, parallel=2)
    embedder = HostedEmbedder(host, "nomic")
    stub.longest_text = 5
    with pytest.raises(ServiceUnavailable) as failure:
        await embedder.embed(["short"])
    assert not isinstance(failure.value, InputRefused)
    stub.longest_text = 20
    await embedder.embed(["short"])
    with pytest.raises(InputRefused, match="exceeds the context length") as failure:
        await embedder.embed(["a longer text than that"])
    assert failure.value.component == "embedder"
    await host.close()


@pytest.mark.parametrize("asked_before", [True, False])
async def test_a_dead_host_is_the_embedders_failure(host, stub, asked_before):
    embedder = HostedEmbedder(host, "nomic")
    if asked_before:
        await embedder.embed([])
    await stub.stop()
    with pytest.raises(ServiceUnavailable) as failure:
        await embedder.embed(["a"])
    assert failure.value.component == "embedder"
    await stub.start()


async def test_the_error_for_a_missing_host_has_a_remedy():
    embedder = HostlessEmbedder("nomic")
    assert embedder.dimensions is None
    for texts in ([], ["a"]):
        with pytest.raises(ConfigurationError, match=r"nomic needs a model host. Set OLLAMA.*cragside reindex"):
            await embedder.embed(texts)


@pytest.mark.waits("host")
async def test_passages_are_embedded_two_batches_at_a_time_and_questions_pass_them(stub):
    host = OllamaHost(stub.url, parallel=64)
    stub.seconds = 0.05
    passages = [host.embed("nomic", [f"passage {n} {number}" for number in range(4)]) for n in range(6)]
    await asyncio.gather(*passages)
    assert stub.most_in_flight == 2
    stub.calls.clear()
    stub.seconds = 0.5
    passages = [host.embed("nomic", [f"passage {n} {number}" for number in range(4)]) for n in range(3)]
    questions = [host.embed("nomic", ["a question", "its names", "its words"]) for _ in range(6)]
    await asyncio.gather(*passages, *questions)
    first = [asked["input"][0] for asked in stub.asked("/api/embed")][:8]
    assert first.count("a question") == 6
    await host.close()
