import asyncio
import json
from contextlib import suppress

import pytest

from cragside.adapters.openai import OpenAIHost
from cragside.databases.renewable import Fixed
from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from tests.exchanged_keys import ExchangedKey
from tests.services.stub_ollama import StubOllama
from tests.services.tools import free_port

SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


@pytest.fixture
async def stub():
    async with StubOllama(lambda _: "yes", models=("judge", "other")) as stub:
        yield stub


@pytest.fixture
async def host(stub):
    host = OpenAIHost(f"{stub.url}/v1", Fixed("sk-hush"), parallel=2)
    yield host
    await host.close()


async def test_the_key_goes_to_the_host_and_into_no_message(host, stub, caplog):
    caplog.set_level("DEBUG")
    await host.check_chat("judge")
    await host.check_embedding("judge")
    await host.models()
    assert set(stub.authorisations) == {"Bearer sk-hush"}
    stub.status = (401, "Incorrect API key provided: sk-hush")
    with pytest.raises(ServiceUnavailable, match=r"refused the key \(401\). Correct OPENAI_API_KEY") as refused:
        await host.check_chat("judge")
    assert "sk-hush" not in refused.value.message_with_place + caplog.text


@pytest.mark.parametrize("thought", ["<think>Is it?", ""], ids=["in its text", "apart"])
async def test_a_model_whose_thoughts_take_the_whole_answer_gets_room_for_them(host, stub, thought):
    def say(asked):
        enough = asked["max_tokens"] >= 1000
        stub.done_reason = "stop" if enough else "length"
        return f"{thought}</think>yes" if enough and thought else "yes" if enough else thought

    stub.say = say
    assert [(await host.chat("judge", "ready?", max_tokens=8)).text for _ in range(2)] == ["yes", "yes"]
    assert [asked["max_tokens"] for asked in stub.asked("/v1/chat/completions")] == [8, 1032, 1032]


async def test_an_answer_that_is_merely_too_long_is_not_asked_for_again(host, stub):
    stub.done_reason = "length"
    assert not (await host.chat("judge", "ready?", max_tokens=8)).complete
    assert len(stub.asked("/v1/chat/completions")) == 1


@pytest.mark.parametrize("status", [400, 500])
async def test_a_host_that_quotes_the_key_brings_it_into_no_message(host, stub, status):
    stub.status = (status, "bad header: Bearer sk-hush")
    with pytest.raises(ServiceUnavailable, match=f"answered {status}: bad header") as refused:
        await host.check_chat("judge")
    assert "sk-hush" not in refused.value.message_with_place


async def test_a_list_refused_with_the_key_brings_it_into_no_message(host, stub):
    stub.refusals["/v1/models"] = 500
    stub.refusal_text = "bad header: Bearer sk-hush"
    with pytest.raises(ServiceUnavailable, match="answered 500: bad header") as refused:
        await host.models()
    assert "sk-hush" not in refused.value.message_with_place


async def test_without_a_key_there_is_no_header(stub):
    host = OpenAIHost(f"{stub.url}/v1", Fixed(""), parallel=1)
    await host.check_chat("judge")
    assert stub.authorisations == [None]
    await host.close()


async def test_a_request_under_way_while_the_key_is_exchanged_brings_the_old_one_into_no_message():
    asked, exchanged = asyncio.Event(), asyncio.Event()

    async def answer(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        status, body = "200 OK", "{}"
        if b"/models" in head:
            asked.set()
            await exchanged.wait()
            status, body = "400 Bad Request", '{"error": {"message": "Who is Bearer old?"}}'
        elif b"Bearer old" in head:
            status = "401 Unauthorized"
        writer.write(f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n{body}".encode())
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    host = OpenAIHost(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", ExchangedKey(), parallel=2)
    asking = asyncio.create_task(host.models())
    await asyncio.wait_for(asked.wait(), 30)
    await host._json("GET", "/other")
    exchanged.set()
    with pytest.raises(ServiceUnavailable, match="answered 400") as refused:
        await asking
    assert "Bearer old" not in refused.value.message_with_place
    await host.close()
    server.close()


async def test_a_refused_key_is_read_anew(stub):
    stub.key = "new"
    host = OpenAIHost(f"{stub.url}/v1", ExchangedKey(), parallel=1)
    await host.check_chat("judge")
    assert stub.authorisations == ["Bearer old", "Bearer new"]
    await host.close()


@pytest.mark.parametrize(("requested", "chosen"), [("judge", "judge"), ("unknown", None), (None, None), ("", None)])
async def test_the_model_of_the_request_is_chosen_if_the_host_lists_it(host, requested, chosen):
    assert await host.choose(requested) == chosen


async def test_a_model_of_the_settings_has_to_be_listed(stub):
    host = OpenAIHost(f"{stub.url}/v1", Fixed(""), parallel=1, chat_model="gone")
    with pytest.raises(ServiceUnavailable, match="does not list gone"):
        await host.choose("judge")
    await host.close()


async def test_a_host_without_a_list_is_asked_for_whatever_is_named(host, stub):
    stub.refusals["/v1/models"] = 404
    assert await host.choose("anything") == "anything"
    assert await host.models() == frozenset()


async def test_a_host_without_schemas_is_asked_without(host, stub):
    def say(asked):
        return json.dumps("response_format" in asked)

    stub.say, stub.schemas = say, False
    for _ in range(2):
        assert (await host.chat("judge", "?", schema=SCHEMA, max_tokens=9)).text == "false"
    asked = stub.asked("/v1/chat/completions")
    assert ["response_format" in body for body in asked] == [True, False, False]
    assert {body["max_tokens"] for body in asked} == {9}


async def test_a_host_that_asks_for_a_key_that_nobody_set_is_told_apart(stub):
    host = OpenAIHost(f"{stub.url}/v1", Fixed(""), parallel=1)
    stub.status = (401, "missing key")
    with pytest.raises(ServiceUnavailable, match=r"asks for a key \(401\). Set OPENAI_API_KEY"):
        await host.check_chat("judge")
    await host.close()


async def test_an_answer_that_is_written_has_a_limit(host, stub):
    with suppress(ServiceUnavailable):  # the stub streams no answers of this API
        [piece async for piece in host.write("judge", [{"role": "user", "content": "?"}], max_tokens=7)]
    assert [body["max_tokens"] for body in stub.asked("/v1/chat/completions")] == [7]


async def test_a_secret_that_cannot_be_asked_for_is_named(stub):
    class Nowhere(Fixed):
        async def current(self):
            raise ConfigurationError("OPENAI_API_KEY_SECRET is no ARN")

    host = OpenAIHost(stub.url + "/v1", Nowhere(""), parallel=1)
    with pytest.raises(ServiceUnavailable, match="OPENAI_API_KEY_SECRET is no ARN"):
        await host.models()
    await host.close()


async def test_a_cut_answer_is_told(host, stub):
    stub.done_reason = "length"
    assert not (await host.chat("judge", "?", schema=SCHEMA, max_tokens=9)).complete


async def test_texts_are_cut_until_the_model_reads_them(host, stub):
    stub.longest_text = 3000
    assert len(await host.embed("judge", ["short", "x" * 10_000])) == 2
    sent = [[len(text) for text in body["input"]] for body in stub.asked("/v1/embeddings")]
    assert sent == [[5, 10_000], [5, 5000], [5, 2500]]


async def test_a_silent_host_is_said_to_be_silent():
    host = OpenAIHost(f"http://127.0.0.1:{free_port()}/v1", Fixed("sk-hush"), parallel=1)
    for call in (host.version(), host.check_chat("judge"), host.check_embedding("judge")):
        with pytest.raises(ServiceUnavailable, match="does not answer") as silent:
            await call
        assert silent.value.component == "model_host"
    await host.close()


async def test_windows_are_read_from_the_list(host, stub):
    stub.listed["judge"] = {"max_model_len": 8192}
    stub.listed["other"] = {"meta": {"n_ctx_train": 32_768}}
    assert (await host.context_length("judge"), await host.window("judge")) == (8192, 8192)
    assert (await host.context_length("other"), await host.window("other")) == (32_768, None)
