"""Real hosts with OpenAI's API, from a document to a cited answer: llama.cpp's server, and the `/v1` of Ollama."""

import httpx
import numpy as np
import openai
import pytest
from fastapi import FastAPI
from pydantic import SecretStr

from cragside.adapters.embedded.annotator import EmbeddedAnnotator
from cragside.adapters.embedded.language_model import EmbeddedLanguageModel
from cragside.adapters.model_host.annotator import HostedAnnotator
from cragside.adapters.model_host.language_model import HostedLanguageModel
from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.evidence import Document
from cragside.entrypoints.access import Keys
from cragside.entrypoints.component_checks import CheckOptions, examine_components
from cragside.entrypoints.proxy.app import Proxy
from cragside.settings import Settings
from tests.services import llama_cpp, ollama

LAMP = "The keeper of the harbour lights the lamp at dusk."
# More than the 256 tokens that all-MiniLM reads, and what llama.cpp is told to read at once.
LONG = f"{LAMP} " * 30
# Chat model, embedding model, key. Ollama takes any key.
HOSTS = {
    "llama_cpp": (llama_cpp.CHAT_MODEL, llama_cpp.CHAT_MODEL, llama_cpp.KEY),
    "ollama": (ollama.CHAT_MODEL, ollama.EMBEDDING_MODEL, "sk-hush"),
}


@pytest.fixture
def opened(request, tmp_path):
    """A function that makes a container before a host."""

    def opened(name, key=None):
        chat, embedding, right = HOSTS[name]
        settings = Settings(
            home=tmp_path,
            model_host=f"openai+{request.getfixturevalue(name)}/v1",
            openai_api_key=SecretStr(key or right),
            chat_model=chat,
            embedding_model=embedding,
            ollama_parallel=1,
        )
        # The small model would take minutes over a whole document; `_extracts` has it answer.
        return Container(settings, annotator=EmbeddedAnnotator(), language_model=EmbeddedLanguageModel())

    return opened


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("llama_cpp", marks=pytest.mark.services("llama_cpp")),
        pytest.param("ollama", marks=pytest.mark.real_ollama),
    ],
)
async def test_a_host_with_openais_api_does_all_the_work(name, opened, caplog):
    caplog.set_level("DEBUG")
    container = opened(name)
    try:
        await _embeds(container)
        await _grades_and_rewrites(container)
        await _extracts(container)
        await _indexes(container)
        await _is_reached_through_the_proxy(container)
        await _is_examined(container)
    finally:
        await container.close()
    assert container.settings.openai_api_key.get_secret_value() not in caplog.text
    assert container.settings.openai_api_key.get_secret_value() not in repr(container.settings)


async def _embeds(container):
    vectors = await (await container.open_embedder(container.settings.embedding_model)).embed([LAMP, LONG, ""])
    assert vectors.shape[0] == 3
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-3)


async def _grades_and_rewrites(container):
    passage = Document("1", LAMP, "local", title="Harbour")
    assert 0 <= await container.judge.probability(container.settings.chat_model, "Who lights the lamp?", passage) <= 1
    assert (await container.rewrite("Who lights the lamp? " * 10, None)).strip()


async def _extracts(container):
    described = await HostedAnnotator(container.host, EmbeddedAnnotator()).tier3("text", LAMP)
    assert described["by"] == container.settings.chat_model
    assert described["summary"].strip()
    model = HostedLanguageModel(container.host, EmbeddedLanguageModel())
    assert (await model.complete("Say yes.", system="Answer with one word.")).strip()


async def _indexes(container):
    accepted = await container.intake.text(SourceText("lamp.md", LAMP), workspace="default")
    await container.worker().run(until_idle=True, sweep=False)
    library = (await container.workspaces.open("default")).documents
    record = await library.document(accepted.record.id)
    assert (record.status, record.error) == ("enriched", "")


def _sdk(container):
    """OpenAI's own SDK before the proxy. A client's key stays with cragside."""
    app = httpx.ASGITransport(Proxy(container, FastAPI(), keys=Keys(container)))
    client = httpx.AsyncClient(transport=app, timeout=60)
    return openai.AsyncOpenAI(base_url="http://127.0.0.1/v1", api_key="client", http_client=client, max_retries=0)


async def _is_reached_through_the_proxy(container):
    async with _sdk(container) as sdk:
        assert container.settings.chat_model in [model.id async for model in await sdk.models.list()]
        headers = await _streams(sdk, container, "/rag Who lights the lamp?")
        assert "x-rag-verdict" in headers
        for _ in range(3):
            headers = await _streams(sdk, container, "Say yes.")
            assert "x-rag-verdict" not in headers


async def _streams(sdk, container, prompt):
    """The headers of a streamed answer. A host may close the connection behind it."""
    messages = [{"role": "user", "content": prompt}]
    raw = await sdk.chat.completions.with_raw_response.create(
        model=container.settings.chat_model, max_tokens=4, messages=messages, stream=True
    )
    pieces = [choice async for piece in raw.parse() for choice in piece.choices]
    assert "".join(piece.delta.content or "" for piece in pieces)
    assert pieces[-1].finish_reason in ("length", "stop")
    vectors = await sdk.embeddings.create(model=container.settings.embedding_model, input="lamp")
    assert len(vectors.data[0].embedding) > 1
    return raw.headers


async def _is_examined(container):
    found = await _examined(container)
    assert found["model_host"].state == "ok"
    assert "answered a test call" in found["chat model"].detail
    assert "answered a test call" in found["embedding model"].detail


async def _examined(container):
    options = CheckOptions(60, thorough=True, places=False, message=str)
    return {each.component: each for each in await examine_components(container, options)}


async def test_a_host_that_refuses_the_key_is_an_outage_that_doctor_tells(opened, llama_cpp, caplog):
    caplog.set_level("DEBUG")
    container = opened("llama_cpp", "sk-wrong")
    try:
        with pytest.raises(ServiceUnavailable, match=r"refused the key \(401\). Correct OPENAI_API_KEY"):
            await container.judge.ready(None)
        async with _sdk(container) as sdk:
            with pytest.raises(openai.InternalServerError, match="refuses the key that cragside has") as refused:
                await sdk.embeddings.create(model="any", input=LAMP)
        assert refused.value.status_code == 503
        found = await _examined(container)
    finally:
        await container.close()
    assert found["model_host"].state != "ok"
    assert "Correct OPENAI_API_KEY" in str(found["model_host"])
    assert "sk-wrong" not in caplog.text
