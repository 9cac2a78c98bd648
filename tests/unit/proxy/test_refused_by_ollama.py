"""Requests that Ollama refuses for their form pass through to it, with nothing retrieved."""

import json
from typing import Any

import pytest

PATHS = ["/api/chat", "/api/generate", "/v1/chat/completions"]
WHOLE = {"model": "m", "prompt": "/rag x", "messages": [{"role": "user", "content": "/rag x"}]}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "change",
    [
        {"model": None},
        {"model": ""},
        {"model": " "},
        {"model": 7},
        {"model": ["m"]},
        {"MODEL": 7},
        {"stream": "yes"},
        {"stream": 0},
        {"top_logprobs": 21},
        {"top_logprobs": -1},
        {"top_logprobs": 1.5},
        {"top_logprobs": True},
    ],
)
async def test_no_evidence_is_retrieved_for_it(proxied: Any, path: str, change: dict[str, Any]) -> None:
    body = json.dumps({**WHOLE, **change}).encode()
    await proxied.ask(f"POST {path}", body)
    assert proxied.enricher.calls == []
    assert proxied.ollama.requests[0].body == body


async def test_options_are_an_object_on_ollamas_routes(proxied: Any) -> None:
    for path in PATHS:
        await proxied.post(path, {**WHOLE, "options": "fast"})
    assert len(proxied.enricher.calls) == 1  # OpenAI's interface has no such field


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "change",
    [{"stream": None}, {"stream": True}, {"top_logprobs": 0}, {"top_logprobs": 20}, {"options": None}, {"options": {}}],
)
async def test_every_form_that_ollama_accepts_is_enriched(proxied: Any, path: str, change: dict[str, Any]) -> None:
    await proxied.post(path, {**WHOLE, **change})
    assert len(proxied.enricher.calls) == 1


async def test_go_takes_the_models_name_in_any_case(proxied: Any) -> None:
    await proxied.post("/api/chat", {"Model": "m", "messages": WHOLE["messages"]})
    assert len(proxied.enricher.calls) == 1
