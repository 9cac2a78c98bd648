"""The real Ollama takes the enriched request of each route, and never sees the suffix of a model's name."""

import httpx
import pytest
from fastapi import FastAPI

from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.entrypoints.access import Keys
from cragside.entrypoints.proxy.app import Proxy
from cragside.settings import Settings
from tests.services.ollama import CHAT_MODEL

pytestmark = pytest.mark.real_ollama

QUESTION = "Who lights the lamp of the harbour?"
PART = {"text": f"/rag {QUESTION}"}
ROUTES = {
    "/v1/messages": {"max_tokens": 4, "messages": [{"role": "user", "content": [{"type": "text", **PART}]}]},
    "/v1/responses": {
        "max_output_tokens": 16,
        "input": [{"role": "user", "content": [{"type": "input_text", **PART}]}],
    },
    "/v1/completions": {"max_tokens": 4, "prompt": f"/rag {QUESTION}"},
    "/api/chat": {
        "model": f"{CHAT_MODEL}+rag",
        "stream": False,
        "options": {"num_predict": 4},
        "messages": [{"role": "user", "content": QUESTION}],
    },
}


async def test_ollama_answers_on_each_route_with_evidence(ollama, tmp_path):
    models = {"chat_model": "embedded", "embedding_model": "embedded"}
    container = Container(Settings(home=tmp_path, ollama_base_url=ollama, list_rag_models=True, **models))
    try:
        source = SourceText("lamp.md", "The keeper of the harbour lights the lamp at dusk.")
        await container.intake.text(source, workspace="default")
        await container.worker().run(until_idle=True, sweep=False)
        app = httpx.ASGITransport(Proxy(container, FastAPI(), keys=Keys(container)))
        async with httpx.AsyncClient(transport=app, base_url="http://127.0.0.1", timeout=60) as client:
            for path, body in ROUTES.items():
                reply = await client.post(path, json={"model": CHAT_MODEL, **body})
                assert (reply.status_code, reply.headers["x-rag-verdict"]) == (200, "local"), reply.text
                assert "x-rag-degraded" not in reply.headers
            listed = (await client.get("/api/tags")).json()["models"]
            assert {CHAT_MODEL, f"{CHAT_MODEL}+rag"} <= {model["name"] for model in listed}
            assert (await client.post("/api/show", json={"model": f"{CHAT_MODEL}+rag"})).status_code == 200
    finally:
        await container.close()
