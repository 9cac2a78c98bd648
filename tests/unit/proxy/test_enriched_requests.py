import asyncio
import json

import pytest
from proxy_stub import FakeHost, raw_post

from cragside.domain.errors import ConfigurationError, DeadlineExceeded, PayloadTooLarge, ServiceUnavailable
from cragside.domain.outcome import Degradation
from cragside.domain.preferences import NOTHING_FOUND
from cragside.entrypoints.proxy.routes import ROUTES

BLOCK = "<evidence>\n[1] a passage\n</evidence>"


def forwarded(proxied):
    assert len(proxied.ollama.requests) == 1
    return json.loads(proxied.ollama.requests[0].body)


async def test_generate_gets_the_block_in_its_prompt_and_keeps_every_other_field(proxied):
    extras = {
        "model": "m",
        "options": {"temperature": 0.1, "num_ctx": 8192, "stop": ["x"]},
        "format": {"type": "object"},
        "images": ["aGk="],
        "keep_alive": "5m",
        "think": "high",
        "stream": False,
        "suffix": "end",
        "system": "be terse",
        "template": "{{ .Prompt }}",
        "context": [1, 2],
        "raw": True,
        "logprobs": True,
        "unknown": {"deep": [None, 1, 2.5, "é", "\U0001f600"]},
        "big": 12345678901234567890123,
        "messages": "not looked at",
    }
    await proxied.post("/api/generate", {**extras, "prompt": " /RAG what is it?"})
    assert forwarded(proxied) == {**extras, "prompt": f"{BLOCK}\n\nwhat is it?"}


async def test_chat_gets_the_block_before_the_last_user_message(proxied):
    extras = {"model": "m", "tools": [{"type": "function"}], "options": {"seed": 1}, "prompt": "not looked at"}
    history = [{"role": "system", "content": "s"}, {"role": "user", "content": "/rag old"}, {"role": "assistant"}]
    asked = {"role": "user", "content": "/rag new?", "images": ["aGk="]}
    after = {"role": "tool", "content": "42", "tool_name": "t"}
    await proxied.post("/api/chat", {**extras, "messages": [*history, asked, after]})
    evidence = {"role": "system", "content": BLOCK}
    assert forwarded(proxied) == {**extras, "messages": [*history, evidence, {**asked, "content": "new?"}, after]}


async def test_openai_parts_keep_their_images(proxied):
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    attached = {"type": "text", "text": "<file>\n/rag stays\n</file>"}
    parts = [image, {"type": "text", "text": "/rag what is this?"}, attached]
    payload = {
        "model": "m",
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": parts}],
    }
    await proxied.post("/v1/chat/completions", payload)
    sent = forwarded(proxied)
    assert sent["messages"][0] == {"role": "system", "content": BLOCK}
    assert sent["messages"][1]["content"] == [image, {"type": "text", "text": "what is this?"}, parts[2]]
    assert sent["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize(
    "body",
    [
        rb'{"model":"m","prompt":"\/rag why?"}',
        rb'{"model":"m","prompt":"\u002frag why?"}',
        rb'{"model":"m","prompt":"\u00a0/\u0052AG\u3000why?"}',
        b'{"model":"m","prompt":"\xe3\x80\x80/Rag\xc2\xa0why?"}',
        b'\n {"prompt":"plain", "prompt":"/rag why?", "model":"m"}',
    ],
)
async def test_the_command_is_found_however_json_writes_it(proxied, body):
    await proxied.ask("POST /api/generate", body)
    assert forwarded(proxied)["prompt"] == f"{BLOCK}\n\nwhy?"


async def test_the_route_is_found_however_the_path_writes_it(proxied):
    await proxied.post("/api/ch%61t", {"model": "m", "messages": [{"role": "user", "content": "/rag why?"}]})
    assert len(proxied.enricher.calls) == 1


@pytest.mark.parametrize(
    "path", ["/api/chat/", "/API/chat", "/api/embed", "/v1/embeddings", "/v1/messages/count_tokens", "//api/chat"]
)
async def test_other_routes_are_not_looked_at(proxied, path):
    payload = {"model": "m", "prompt": "/rag x", "messages": [{"role": "user", "content": "/rag x"}]}
    await proxied.post(path, payload)
    assert forwarded(proxied) == payload
    assert proxied.enricher.calls == []


@pytest.mark.parametrize(
    ("path", "payload"),
    [
        ("/api/generate", {"model": "m"}),
        ("/api/generate", {"model": "m", "prompt": "", "keep_alive": 0}),
        ("/api/generate", {"model": "m", "messages": [{"role": "user", "content": "/rag x"}]}),
        ("/api/chat", {"model": "m", "messages": []}),
        ("/api/chat", {"model": "m", "prompt": "/rag x"}),
    ],
)
async def test_loading_a_model_passes(proxied, path, payload):
    assert (await proxied.post(path, payload)).status == 200
    assert proxied.enricher.calls == []


async def test_the_answer_reports_the_evidence(proxied):
    proxied.enricher.degraded = (Degradation("search", "down\r\nX-Evil: 1"), Degradation("sea\r\nrch", "x"))
    reply = await proxied.post("/api/generate", {"model": "m", "prompt": "/rag why?"})
    assert reply.json == {"response": "ok"}
    assert reply.header(b"x-rag-verdict") == [b"local"]
    assert reply.header(b"x-rag-documents") == [b"1"]
    assert reply.header(b"x-rag-degraded") == [b"search, sea__rch"]
    assert reply.header(b"x-evil") == []
    assert b"rag_context" not in proxied.ollama.requests[0].body


async def test_without_evidence_the_model_is_told_so(proxied):
    proxied.enricher.documents = 0
    reply = await proxied.post("/api/generate", {"model": "m", "prompt": "/rag why?"})
    assert forwarded(proxied)["prompt"] == f"{NOTHING_FOUND}\n\nwhy?"
    assert (reply.header(b"x-rag-verdict"), reply.header(b"x-rag-degraded")) == ([b"none"], [])


async def test_the_length_is_that_of_the_enriched_body(proxied):
    await proxied.post("/api/generate", {"model": "m", "prompt": "/rag why?"}, (b"X-Other: 1",))
    sent = proxied.ollama.requests[0]
    assert sent.header(b"content-length") == [b"%d" % len(sent.body)]
    assert sent.header(b"x-other") == [b"1"]


async def test_a_chunked_request_is_enriched(proxied):
    body = json.dumps({"model": "m", "prompt": "/rag why?"}).encode()
    await proxied.raw(
        b"POST /api/generate HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        + b"".join(b"1\r\n%c\r\n" % byte for byte in body)
        + b"0\r\n\r\n"
    )
    assert forwarded(proxied)["prompt"] == f"{BLOCK}\n\nwhy?"


async def test_half_a_surrogate_pair_is_replaced_as_ollama_does(proxied):
    await proxied.ask("POST /api/generate", rb'{"model": "m", "prompt":"/rag a\ud800b \ud83d\ude00","x":"\udfff"}')
    assert proxied.enricher.calls[0]["request"]["prompt"] == "/rag a\ufffdb \U0001f600"
    assert forwarded(proxied)["x"] == "\ufffd"


@pytest.mark.parametrize(
    ("field", "header", "expected"),
    [(None, None, "default"), ("notes", None, "notes"), (None, b"work", "work"), ("notes", b"work", "notes")],
)
async def test_the_workspace_is_that_of_field_header_or_settings(proxied, field, header, expected):
    payload = {"model": "m", "prompt": "/rag x", **({"workspace": field} if field else {})}
    await proxied.post("/api/generate", payload, (b"X-Rag-Workspace: " + header,) if header else ())
    assert proxied.enricher.calls[0]["workspace"] == expected
    assert "workspace" not in forwarded(proxied)
    assert proxied.ollama.requests[0].header(b"x-rag-workspace") == []


@pytest.mark.parametrize("name", ["../etc", "", "a" * 64, "a/b", 7, ["x"], "name\n"])
async def test_a_workspace_that_is_no_name_is_refused(proxied, name):
    reply = await proxied.post("/api/generate", {"model": "m", "prompt": "/rag x", "workspace": name})
    assert (reply.status, list(reply.json)) == (400, ["error"])
    assert proxied.ollama.requests == []


@pytest.mark.parametrize(
    ("field", "header", "told"),
    [
        (None, None, (None, None)),
        (True, None, (True, None)),
        (None, b"true", (None, True)),
        (False, b"true", (False, True)),
        (None, b"False", (None, False)),
    ],
)
async def test_field_and_header_ask_for_memory_and_are_not_forwarded(proxied, field, header, told):
    payload = {"model": "m", "prompt": "/rag x", **({} if field is None else {"memory": field})}
    await proxied.post("/api/generate", payload, (b"X-Rag-Memory: " + header,) if header else ())
    call = proxied.enricher.calls[0]
    assert (call["request"].get("memory"), call["memory"]) == told
    assert set(forwarded(proxied)) == {"model", "prompt"}
    assert proxied.ollama.requests[0].header(b"x-rag-memory") == []


async def test_a_header_that_is_neither_true_nor_false_is_refused(proxied):
    reply = await proxied.post("/api/generate", {"model": "m", "prompt": "/rag x"}, (b"X-Rag-Memory: maybe",))
    assert reply.status == 400
    assert b"X-RAG-Memory must be true or false." in reply.body
    assert proxied.ollama.requests == []


@pytest.mark.parametrize(
    ("field", "header", "told"),
    [
        (None, None, (None, None)),
        ("witness-de", None, ("witness-de", None)),
        (None, b"strict-en", (None, "strict-en")),
        ("witness-de", b"strict-en", ("witness-de", "strict-en")),
    ],
)
async def test_the_persona_of_field_or_header_is_not_forwarded(proxied, field, header, told):
    payload = {"model": "m", "prompt": "/rag x", "compress": True, **({"persona": field} if field else {})}
    await proxied.post("/api/generate", payload, (b"X-Rag-Persona: " + header,) if header else ())
    call = proxied.enricher.calls[0]
    assert (call["request"].get("persona"), call["persona"]) == told
    assert call["request"]["compress"] is True
    assert set(forwarded(proxied)) == {"model", "prompt"}
    assert proxied.ollama.requests[0].header(b"x-rag-persona") == []


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (ConfigurationError("the secret detail is in the log"), 503),
        (PayloadTooLarge("too long"), 413),
        (ServiceUnavailable("knowledge_base", "nothing could be asked"), 503),
        (DeadlineExceeded("too late"), 504),
        (RuntimeError("secret detail"), 500),
    ],
)
async def test_a_failure_has_the_shape_of_the_api(proxied, failure, status):
    proxied.enricher.failure = failure
    payload = {"model": "m", "messages": [{"role": "user", "content": "/rag x"}]}
    reply = await proxied.post("/api/chat", payload)
    assert (reply.status, list(reply.json), type(reply.json["error"])) == (status, ["error"], str)
    reply = await proxied.post("/v1/chat/completions", payload)
    assert (reply.status, list(reply.json)) == (status, ["error"])
    assert list(reply.json["error"]) == ["message", "type", "param", "code"]
    assert b"secret detail" not in reply.body
    assert proxied.ollama.requests == []


async def test_a_configuration_error_is_logged_and_hidden_from_the_client(proxied, caplog):
    proxied.enricher.failure = ConfigurationError("built with small, but RAG_EMBEDDING_MODEL names large")
    reply = await proxied.post("/api/chat", {"model": "m", "messages": [{"role": "user", "content": "/rag x"}]})
    assert (reply.status, b"small" in reply.body) == (503, False)
    assert "built with small, but RAG_EMBEDDING_MODEL names large" in caplog.text


@pytest.mark.parametrize("prompt", ["/rag", "/rag   ", " \n/RAG\t"])
async def test_the_command_without_a_question_is_refused(proxied, prompt):
    reply = await proxied.post("/api/generate", {"model": "m", "prompt": prompt})
    assert (reply.status, reply.json) == (400, {"error": "The command has no question."})


async def test_a_client_that_leaves_ends_the_search_for_evidence(proxied):
    begun, ended = asyncio.Event(), asyncio.Event()

    async def endless():
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    proxied.enricher.before = endless
    body = b'{"model": "m", "prompt":"/rag why?"}'
    _, writer = await proxied.open()
    writer.write(raw_post("/api/generate", body))
    async with asyncio.timeout(5):
        await begun.wait()
        writer.close()
        await ended.wait()
    assert proxied.ollama.requests == []


QUESTION = {"model": "m", "messages": [{"role": "user", "content": "/rag why?"}]}
SHORT = "<evidence>\n[1] a passage\n</evidence>"
LONG = "It was said again at length. " * 500
LATER = {"model": "m", "messages": [{"role": "user", "content": LONG}, *QUESTION["messages"]]}


@pytest.mark.parametrize(
    ("limit", "window", "block", "num_ctx"),
    [
        pytest.param(32_768, 4096, SHORT, 4096, id="the host's window is kept where all fits"),
        pytest.param(32_768, 8192, SHORT, 8192, id="a window of 8192 is kept where all fits"),
        pytest.param(32_768, 32_768, SHORT, 32_768, id="the largest window is kept where all fits"),
        pytest.param(131_072, 32_768, LONG, 32_768, id="a large window is never lowered"),
        pytest.param(32_768, 2048, LONG, 8192, id="raised where Ollama would cut at 2048"),
        pytest.param(32_768, 4096, LONG, 8192, id="raised where Ollama would cut at 4096"),
        pytest.param(5000, 4096, LONG, 5000, id="not raised beyond the model's limit"),
    ],
)
async def test_num_ctx_holds_the_request_within_the_models_limit(start, limit, window, block, num_ctx):
    proxied = await start(host=FakeHost(limit=limit, window=window))
    proxied.enricher.block = block
    reply = await proxied.post("/api/chat", {**QUESTION, "options": {"seed": 1}})
    assert forwarded(proxied)["options"] == {"seed": 1, "num_ctx": num_ctx}
    assert reply.header(b"x-rag-degraded") == []


async def test_evidence_is_shortened_to_a_num_ctx_that_the_request_sets(start):
    proxied = await start(host=FakeHost(limit=32_768))
    await proxied.post("/api/chat", {**QUESTION, "options": {"num_ctx": 2048}})
    assert 900 < proxied.enricher.calls[0]["evidence_tokens"] < 1024
    assert forwarded(proxied)["options"] == {"num_ctx": 2048}


async def test_evidence_is_shortened_on_openais_route_which_has_no_num_ctx(start):
    proxied = await start(host=FakeHost(limit=32_768, window=2048))
    await proxied.post("/v1/chat/completions", QUESTION)
    assert 900 < proxied.enricher.calls[0]["evidence_tokens"] < 1024
    assert "options" not in forwarded(proxied)


async def test_evidence_has_its_budget_on_openais_route_of_a_host_with_a_large_window(start):
    proxied = await start(host=FakeHost(limit=131_072, window=32_768))
    reply = await proxied.post("/v1/chat/completions", LATER)
    assert proxied.enricher.calls[0]["evidence_tokens"] == 3000
    assert reply.header(b"x-rag-degraded") == []


async def test_a_request_that_fills_the_window_gets_no_evidence_and_says_so(start):
    proxied = await start(host=FakeHost(limit=2048, window=2048))
    proxied.enricher.documents = 0
    reply = await proxied.post("/api/chat", LATER)
    assert proxied.enricher.calls[0]["evidence_tokens"] == 0
    assert reply.header(b"x-rag-degraded") == [b"context_window"]


async def test_a_cut_history_is_reported_even_with_evidence(start):
    proxied = await start(host=FakeHost(limit=32_768, window=4096))
    earlier = {"role": "user", "content": LONG * 2}
    reply = await proxied.post("/v1/chat/completions", {"model": "m", "messages": [earlier, *QUESTION["messages"]]})
    assert reply.header(b"x-rag-documents") == [b"1"]
    assert reply.header(b"x-rag-degraded") == [b"context_window"]


@pytest.mark.parametrize(
    "host", [FakeHost(limit=None, window=None), FakeHost(limit=32_768, window=None), FakeHost(limit=1, failure=True)]
)
async def test_an_unknown_window_leaves_budget_and_num_ctx_unchanged(start, host):
    proxied = await start(host=host, context_tokens=777)
    proxied.enricher.block = "word " * 9000
    reply = await proxied.post("/api/chat", QUESTION)
    assert proxied.enricher.calls[0]["evidence_tokens"] == 777
    assert "options" not in forwarded(proxied)
    assert reply.header(b"x-rag-degraded") == []


@pytest.mark.parametrize("options", ["x", [], 7, {"num_ctx": "x"}, {"num_ctx": None}])
@pytest.mark.parametrize("model", ["m", None, 7, ["m"]])
async def test_options_of_a_wrong_type_are_ollamas_to_refuse(start, options, model):
    proxied = await start(host=FakeHost(limit=8192))
    await proxied.post("/api/chat", {**QUESTION, "options": options, "model": model, "tools": 7, "images": "x"})
    assert forwarded(proxied)["options"] == options


@pytest.mark.parametrize("options", [{"num_predict": 1e300}, {"num_predict": -1}, None])
async def test_unknown_options_are_kept_with_the_window(start, options):
    proxied = await start(host=FakeHost(limit=8192))
    await proxied.post("/api/chat", {**QUESTION, "options": options})
    assert forwarded(proxied)["options"] == {**(options or {}), "num_ctx": 4096}


MANY_VALUES = [[] for _ in range(100_001)]


@pytest.mark.attack("exhausted resources")
@pytest.mark.parametrize("path", sorted(ROUTES))
async def test_a_command_among_too_many_values_is_refused_before_they_are_read(proxied, path):
    asked = {"model": "m", "prompt": "/rag q", "messages": [{"role": "user", "content": "/rag q"}], "input": "/rag q"}
    reply = await proxied.post(path, {**asked, "more": MANY_VALUES})
    assert reply.status == 400
    assert "more than 200000 values" in reply.body.decode()
    assert proxied.ollama.requests == []


async def test_many_values_without_the_command_are_passed_on(proxied):
    await proxied.post("/api/generate", {"model": "m", "prompt": "caf\u00e9", "more": MANY_VALUES})
    assert len(proxied.ollama.requests) == 1
