"""A real host with OpenAI's API, from a document to a cited answer: the `/v1` of the real Ollama."""

import httpx
import numpy as np
import openai
import pytest
from fastapi import FastAPI
from pydantic import SecretStr

from cragside.adapters.embedded.annotator import EmbeddedAnnotator
from cragside.adapters.embedded.language_model import EmbeddedLanguageModel
from cragside.adapters.ollama.language_model import OllamaLanguageModel
from cragside.bootstrap import Container
from cragside.domain.document import Document, SourceText
from cragside.entrypoints.component_checks import examine_components
from cragside.entrypoints.findings import Manner
from cragside.entrypoints.keyring import Keys
from cragside.entrypoints.proxy.app import create_proxy
from cragside.settings import Settings
from tests.services.ollama import CHAT_MODEL, EMBEDDING_MODEL

pytestmark = pytest.mark.real_ollama

LAMP = "The keeper of the harbour lights the lamp at dusk."
# More than the 256 tokens that the embedding model reads.
LONG = f"{LAMP} " * 400


async def test_a_host_with_openais_api_does_all_the_work(ollama, tmp_path, caplog):
    caplog.set_level("DEBUG")
    settings = Settings(
        home=tmp_path,
        model_host=f"openai+{ollama}/v1",
        openai_api_key=SecretStr("sk-hush"),
        chat_model=CHAT_MODEL,
        embedding_model=EMBEDDING_MODEL,
        ollama_parallel=1,
    )
    # The small model would take minutes over a whole document; `_writes` has it answer.
    container = Container(settings, annotator=EmbeddedAnnotator(), language_model=EmbeddedLanguageModel())
    try:
        await _embeds(container)
        await _grades_and_rewrites(container)
        await _writes(container)
        await _indexes(container)
        await _is_reached_through_the_proxy(container)
        await _is_examined(container)
    finally:
        await container.close()
    assert "sk-hush" not in caplog.text
    assert "sk-hush" not in repr(settings)


async def _embeds(container):
    vectors = await (await container.open_embedder(EMBEDDING_MODEL)).embed([LAMP, LONG, ""])
    assert vectors.shape[0] == 3
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-3)


async def _grades_and_rewrites(container):
    grades = await container.grader.judge("Who lights the lamp?", [Document("1", LAMP, "local", title="Harbour")])
    assert grades.grader == CHAT_MODEL
    assert 0 <= grades.scores[0] <= 1
    assert (await container.rewrite("Who lights the lamp?", None)).strip()


async def _writes(container):
    model = OllamaLanguageModel(container.host, EmbeddedLanguageModel())
    assert (await model.complete("Say yes.", system="Answer with one word.")).strip()


async def _indexes(container):
    accepted = await container.intake.text(SourceText("lamp.md", LAMP), workspace="default")
    await container.worker().run(until_idle=True, sweep=False)
    library = (await container.workspaces.open("default")).documents
    record = await library.document(accepted.record.id)
    assert (record.status, record.error) == ("enriched", "")


async def _is_reached_through_the_proxy(container):
    """With OpenAI's own SDK. A client's key stays with cragside."""
    app = httpx.ASGITransport(create_proxy(container, FastAPI(), keys=Keys(container)))
    client = httpx.AsyncClient(transport=app, timeout=60)
    async with openai.AsyncOpenAI(base_url="http://127.0.0.1/v1", api_key="client", http_client=client) as sdk:
        assert CHAT_MODEL in [model.id async for model in await sdk.models.list()]
        asked = {"model": CHAT_MODEL, "max_tokens": 4, "messages": [{"role": "user", "content": "/rag Who lights it?"}]}
        reply = await sdk.chat.completions.with_raw_response.create(**asked)
        assert "x-rag-verdict" in reply.headers
        assert reply.parse().choices[0].message.content


async def _is_examined(container):
    manner = Manner(60, thorough=True, places=False, told=str)
    found = {each.component: each for each in await examine_components(container, manner)}
    assert found["model_host"].state == "ok"
    assert "answered a test call" in found["chat model"].detail
    assert "answered a test call" in found["embedding model"].detail
