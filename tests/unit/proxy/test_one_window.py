"""A model is loaded once, with the window that it will need, and keeps the window that it was raised to."""

import json

import pytest
from proxy_stub import FakeHost

QUESTION = {"model": "m", "messages": [{"role": "user", "content": "/rag why?"}]}
TITLE = {"model": "M:latest", "messages": [{"role": "user", "content": "Generate a title."}]}
LONG = "It was said again at length. " * 500


def windows(proxied):
    return [json.loads(each.body).get("options", {}).get("num_ctx") for each in proxied.ollama.requests]


async def test_a_model_that_is_not_loaded_gets_the_window_for_all_evidence_at_once(start):
    proxied = await start(host=FakeHost(limit=32_768, window=0))
    kept = []

    async def before():
        kept.append(proxied.container.upstream.windows.kept("m"))  # what grades meanwhile finds it

    proxied.enricher.before = before
    await proxied.post("/api/chat", QUESTION)
    await proxied.post("/api/chat", TITLE)
    assert (kept, windows(proxied)) == ([8192], [8192, 8192])


async def test_the_models_limit_bounds_that_window(start):
    proxied = await start(host=FakeHost(limit=2048, window=0))
    await proxied.post("/api/generate", {"model": "m", "prompt": "/rag why?"})
    assert windows(proxied) == [2048]


async def test_prompts_without_evidence_keep_a_raised_window(start):
    proxied = await start(host=FakeHost(limit=32_768, window=4096))
    await proxied.post("/api/chat", TITLE)
    proxied.enricher.block = LONG
    await proxied.post("/api/chat", QUESTION)
    await proxied.post("/api/chat", TITLE)
    await proxied.post("/api/generate", {"model": "m", "prompt": "bye", "options": {"seed": 1}})
    proxied.enricher.block = "<evidence>"
    await proxied.post("/api/chat", QUESTION)
    assert windows(proxied) == [None, 8192, 8192, 8192, 8192]
    assert json.loads(proxied.ollama.requests[3].body) == {
        "model": "m", "prompt": "bye", "options": {"seed": 1, "num_ctx": 8192}
    }  # fmt: skip


@pytest.mark.parametrize(
    "request_",
    [
        {**TITLE, "options": {"num_ctx": 2048}},
        {**TITLE, "options": {"num_ctx": None}},
        {**TITLE, "options": 1},
        {**TITLE, "model": "other"},
        {**TITLE, "model": 1},
        {"messages": []},
    ],
)
async def test_a_prompt_that_brings_a_window_or_is_for_another_model_stays_as_it_is(start, request_):
    proxied = await start(host=FakeHost(limit=32_768, window=4096))
    proxied.container.upstream.windows.keep("m", 8192)
    await proxied.post("/api/chat", request_)
    assert json.loads(proxied.ollama.requests[0].body) == request_


async def test_other_routes_stay_as_they_are(start):
    proxied = await start(host=FakeHost(limit=32_768, window=4096))
    proxied.container.upstream.windows.keep("m", 8192)
    for path in ("/v1/chat/completions", "/api/show"):
        await proxied.post(path, TITLE)
    assert windows(proxied) == [None, None]


async def test_a_prompt_that_does_not_fit_gets_the_hosts_window_and_so_do_the_next_ones(start):
    proxied = await start(host=FakeHost(limit=131_072, window=4096))
    proxied.container.upstream.windows.keep("m", 8192)
    await proxied.post("/api/chat", {"model": "m", "messages": [{"role": "user", "content": LONG * 3}]})
    await proxied.post("/api/chat", TITLE)
    assert windows(proxied) == [None, None]


async def test_a_window_that_a_request_brings_is_kept_for_no_other(start):
    proxied = await start(host=FakeHost(limit=32_768, window=0))
    await proxied.post("/api/chat", {**QUESTION, "options": {"num_ctx": 16_384}})
    await proxied.post("/api/chat", TITLE)
    assert windows(proxied) == [16_384, None]
