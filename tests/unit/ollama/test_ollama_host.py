import asyncio
import json

import pytest

from cragside.adapters.model_host.embedder import HostedEmbedder
from cragside.adapters.model_host.text_host import abridged
from cragside.adapters.ollama.host import OllamaHost
from cragside.databases.renewable import Fixed, Unreadable
from cragside.domain.characters import encodable
from cragside.domain.errors import InputRefused, ServiceUnavailable
from cragside.domain.token_counts import use_window
from tests.exchanged_keys import ExchangedKey
from tests.services.stub_ollama import StubOllama
from tests.services.tools import free_port


@pytest.fixture
async def stub():
    async with StubOllama(models=("judge:latest", "qwen2.5:7b", "embed-only:latest")) as stub:
        stub.cards["embed-only:latest"] = {"capabilities": ["embedding"]}
        yield stub


@pytest.fixture
async def host(stub):
    host = OllamaHost(stub.url, parallel=4)
    yield host
    await host.close()


def named(stub, chat_model):
    return OllamaHost(stub.url, parallel=4, chat_model=chat_model)


async def test_the_host_says_its_version_and_models(host):
    assert await host.version() == "0.17.4"
    assert await host.models() == {"judge:latest", "qwen2.5:7b", "embed-only:latest"}


async def test_answers_of_the_host_are_cached(host, stub):
    for _ in range(3):
        await asyncio.gather(host.models(), host.models(), host.choose("judge"), host.context_length("judge"))
    assert len([path for path, _ in stub.calls if path == "/api/tags"]) == 1
    assert len(stub.asked("/api/show")) == 1


async def test_the_model_of_the_request_is_chosen_if_the_host_has_it(host):
    assert await host.choose("judge") == "judge:latest"
    assert await host.choose("judge:latest") == "judge:latest"


@pytest.mark.parametrize("requested", [None, "", "unknown", "judge:7b", "embed-only"])
async def test_without_a_usable_model_in_the_request_qwen_is_chosen(host, requested):
    assert await host.choose(requested) == "qwen2.5:7b"


async def test_without_a_suitable_model_the_embedded_models_are_chosen(stub):
    stub.models = ["embed-only:latest"]
    host = OllamaHost(stub.url, parallel=4)
    assert await host.choose("embed-only") is None
    await host.close()


async def test_a_model_without_listed_capabilities_is_assumed_to_chat(stub):
    stub.cards["judge:latest"] = {"capabilities": None}
    host = OllamaHost(stub.url, parallel=4)
    assert await host.choose("judge") == "judge:latest"
    await host.close()


async def test_the_configured_model_wins_over_the_requests(stub):
    host = named(stub, "judge")
    assert await host.choose("qwen2.5:7b") == "judge:latest"
    await host.close()


async def test_embedded_as_configured_model_never_asks_the_host(stub):
    assert await named(stub, "embedded").choose("judge") is None
    assert stub.calls == []


@pytest.mark.parametrize(("model", "says"), [("llama3.2", "ollama pull llama3.2"), ("embed-only", "writes no text")])
async def test_a_configured_model_that_cannot_work_is_named(stub, model, says):
    host = named(stub, model)
    with pytest.raises(ServiceUnavailable, match=says):
        await host.choose(None)
    await host.close()


async def test_the_limit_comes_from_the_model_card(host):
    assert await host.context_length("judge") == 32_768
    assert await host.context_length("never-heard-of") is None


@pytest.mark.parametrize("window", [2048, 4096, 32_768])
async def test_the_window_is_the_one_that_the_host_reports(host, stub, window):
    stub.loaded["judge:latest"] = window
    assert await host.window("judge") == window
    assert stub.asked("/api/generate") == []


async def test_a_model_that_is_not_loaded_is_loaded_once_to_know_its_window(host, stub):
    stub.default_context = 32_768
    assert await asyncio.gather(*(host.window("judge") for _ in range(3))) == [32_768] * 3
    assert stub.asked("/api/generate") == [{"model": "judge:latest", "stream": False}]


async def test_a_models_own_num_ctx_needs_no_loading(host, stub):
    stub.cards["judge:latest"] = {"parameters": 'stop    "<|im_end|>"\nnum_ctx                        16384'}
    assert await host.window("judge") == 16_384
    assert stub.asked("/api/generate") == []


async def test_a_models_own_num_ctx_is_never_longer_than_its_limit(host, stub):
    stub.cards["judge:latest"] = {"parameters": "num_ctx 4096", "model_info": {"bert.context_length": 512}}
    assert await host.window("judge") == 512


async def test_the_window_of_an_unknown_model_is_unknown(host, stub):
    assert await host.window("never-heard-of") is None
    assert stub.asked("/api/show") == stub.asked("/api/generate") == []


@pytest.mark.parametrize("answer", [404, 405, 501, "no JSON", "[]"])
async def test_a_host_without_ps_and_show_is_unknown_and_works(stub, answer):
    for path in ("/api/ps", "/api/show"):
        if isinstance(answer, int):
            stub.refusals[path] = answer
        else:
            stub.nonsense[path] = answer
    host = OllamaHost(stub.url, parallel=4)
    assert (await host.context_length("judge"), await host.window("judge")) == (None, None)
    assert await host.choose("judge") == "judge:latest"
    assert (await host.chat("judge", "short", max_tokens=10)).complete
    assert len(await host.embed("judge", ["a"])) == 1
    assert "num_ctx" not in stub.asked("/api/chat")[0]["options"]
    assert stub.asked("/api/generate") == []
    await host.close()


async def test_a_card_without_a_context_length_has_none(host, stub):
    stub.cards["judge:latest"] = {"model_info": {"llama.context_length": "many"}}
    assert await host.context_length("judge") is None


@pytest.mark.parametrize("window", [2048, 4096, 32_768])
async def test_a_text_that_fits_keeps_the_window_that_the_host_reports(host, stub, window):
    stub.loaded["judge:latest"] = window
    await host.chat("judge", "short", max_tokens=10)
    assert stub.asked("/api/chat")[0]["options"] == {
        "temperature": 0,
        "repeat_penalty": 1.0,
        "num_predict": 10,
        "num_ctx": window,
    }


async def test_a_longer_text_raises_num_ctx_to_a_power_of_two_within_the_models_limit(host, stub):
    stub.loaded["judge:latest"] = 2048
    await host.chat("judge", "word " * 1500, max_tokens=10)
    await host.chat("judge", "word " * 3000, max_tokens=10)
    await host.chat("judge", "word " * 60_000, max_tokens=10)
    assert [asked["options"]["num_ctx"] for asked in stub.asked("/api/chat")] == [4096, 8192, 32_768]


async def test_num_ctx_is_raised_where_a_host_does_not_say_its_window_and_may_cut(host, stub):
    stub.refusals["/api/ps"] = 404
    await host.chat("judge", "word " * 3000, max_tokens=10)
    assert stub.asked("/api/chat")[0]["options"]["num_ctx"] == 8192


async def test_thinking_is_switched_off_and_has_room_if_the_model_still_thinks(host, stub):
    stub.cards["judge:latest"] = {"capabilities": ["completion", "thinking"]}
    await host.chat("judge", "short", max_tokens=10)
    asked = stub.asked("/api/chat")[0]
    assert asked["think"] is False
    assert asked["options"]["num_predict"] > 1000


async def test_other_models_are_not_sent_the_think_field(host, stub):
    await host.chat("judge", "short", max_tokens=10)
    assert stub.asked("/api/chat")[0].get("think") is None


async def test_calls_in_flight_are_limited(stub):
    stub.seconds = 0.02
    host = OllamaHost(stub.url, parallel=3)
    await host.prepare()
    await asyncio.gather(
        *(host.chat("judge", "q", max_tokens=5) for _ in range(10)), *(host.embed("judge", ["a"]) for _ in range(5))
    )
    assert stub.most_in_flight <= 3
    await host.close()


async def test_a_silent_host_is_reported_without_its_credentials():
    host = OllamaHost(f"http://alice:s3cret@127.0.0.1:{free_port()}", parallel=1)
    with pytest.raises(ServiceUnavailable, match="does not answer") as failure:
        await host.choose("judge")
    assert failure.value.component == "ollama"
    assert "s3cret" not in f"{failure.value!r} {failure.value.details} {host.url}"
    await host.close()


async def test_credentials_in_the_address_are_sent_with_every_call(stub):
    host = OllamaHost(stub.url.replace("//", "//alice:s3cr%40t@"), parallel=1)
    await host.chat("judge", "q", max_tokens=5)
    await host.embed("judge", ["a"])
    assert set(stub.authorisations) == {"Basic YWxpY2U6czNjckB0"}
    await host.close()


async def test_a_host_that_dies_between_two_calls_is_noticed_and_then_known_to_be_silent(host, stub):
    await host.chat("judge", "q", max_tokens=5)
    await stub.stop()
    with pytest.raises(ServiceUnavailable, match="does not answer"):
        await host.chat("judge", "q", max_tokens=5)
    with pytest.raises(ServiceUnavailable, match="does not answer"):
        await host.models()
    await stub.start()


@pytest.mark.parametrize(
    ("status", "message", "says"),
    [
        (500, "llama runner process has terminated", "llama runner process has terminated"),
        (503, "server busy", "503"),
        (404, "model 'judge' not found", "not found"),
        (401, "", "refused the credentials"),
        (404, "page missing", "does not speak Ollama"),
        (500, {"message": "no room for it"}, "answered 500: no room for it$"),
        (500, {"detail": "no room for it"}, "answered 500: no room for it$"),
    ],
)
async def test_a_refused_call_says_why(host, stub, status, message, says):
    stub.status = (status, message)
    with pytest.raises(ServiceUnavailable, match=says):
        await host.chat("judge", "q", max_tokens=5)
    with pytest.raises(ServiceUnavailable, match=says):
        await host.embed("judge", ["a"])


async def test_a_model_that_was_removed_is_noticed_at_once(host, stub):
    await host.chat("judge", "q", max_tokens=5)
    stub.models.remove("judge:latest")
    with pytest.raises(ServiceUnavailable):
        await host.chat("judge", "q", max_tokens=5)
    assert await host.choose("judge") == "qwen2.5:7b"


async def test_each_event_loop_has_its_own_session(stub):
    host = OllamaHost(stub.url, parallel=2)
    assert await host.version() == "0.17.4"

    async def elsewhere():
        reply = await host.chat("judge", "q", max_tokens=5)
        await host.close()
        return reply

    assert (await asyncio.to_thread(lambda: asyncio.run(elsewhere()))).complete
    assert (await host.chat("judge", "q", max_tokens=5)).complete
    await host.close()


def test_a_long_text_keeps_its_beginning_and_its_end():
    shortened = abridged("first " + "x" * 5000 + " last?", 100)
    assert shortened.startswith("first")
    assert shortened.endswith("last?")
    assert len(shortened) <= 100
    assert abridged("short", 100) == "short"


def test_a_lone_surrogate_is_replaced():
    assert encodable("\ud800 tower 🗼") == "? tower 🗼"


NONSENSE = [
    None, True, 7, "x", [], ["x"], {}, {"models": "x"}, {"models": ["x", None, {}, {"name": 7}, {"name": ["x"]}]},
    {"models": [{"name": "judge:latest", "context_length": "x"}]}, {"models": [{"name": {}, "context_length": True}]},
    {"version": 7}, {"model_info": ["x"]}, {"model_info": "x"}, {"model_info": 7}, {"model_info": {"": None}},
    {"model_info": {"a.context_length": [1]}}, {"parameters": ["x"]}, {"parameters": "num_ctx " + "9" * 5000},
    {"capabilities": "completion"}, {"capabilities": [None, ["x"]]},
    {"message": "x"}, {"message": {"content": 7}}, {"message": {"role": "assistant", "content": None}, "done": True},
    {"message": {"role": "assistant", "content": "", "tool_calls": "x"}, "done": "x", "done_reason": ["x"]},
    {"embeddings": "x"}, {"embeddings": [[]]}, {"embeddings": [None]}, {"embeddings": ["x"]}, {"embeddings": [["x"]]},
    {"embeddings": [[None]]}, {"embeddings": {"0": [1.0]}}, {"embeddings": [[1.0], [1.0]]}, {"embeddings": [[True]]},
]  # fmt: skip


async def everything(host):
    """Each call gives its answer, or the failure that callers are prepared for."""
    calls = [
        host.version(),
        host.models(),
        host.choose("judge"),
        host.context_length("judge"),
        host.window("judge"),
        host.chat("judge", "question", max_tokens=8),
        host.chat("judge", "question " * 9000, max_tokens=8),
        HostedEmbedder(host, "judge").embed(["text"]),
    ]
    return await asyncio.gather(*calls, return_exceptions=True)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/api/show", "/api/tags", "/api/ps", "/api/version", "/api/chat", "/api/embed"])
@pytest.mark.parametrize("nonsense", NONSENSE, ids=lambda nonsense: json.dumps(nonsense)[:60])
async def test_nonsense_from_the_host_is_an_answer_or_a_failure_of_the_host(stub, host, path, nonsense, monkeypatch):
    monkeypatch.setitem(stub.nonsense, path, json.dumps(nonsense))
    outcomes = await everything(host)
    unexpected = [o for o in outcomes if isinstance(o, BaseException) and not isinstance(o, ServiceUnavailable)]
    assert unexpected == []
    assert not [o for o in outcomes if isinstance(o, ServiceUnavailable) and o.component not in ("ollama", "embedder")]


@pytest.mark.parametrize("info", [["x"], "x", 7, {"a.context_length": True}, {"a.context_length": "9"}])
async def test_an_unreadable_model_card_is_ignored(stub, host, info):
    stub.cards["judge:latest"] = {"model_info": info, "parameters": "num_ctx " + "9" * 5000}
    assert await host.context_length("judge") is None


async def test_the_writer_is_the_named_then_configured_then_any_model(host, stub):
    assert await host.writer("judge") == "judge:latest"
    assert await host.writer(None) == "qwen2.5:7b"
    configured = named(stub, "judge")
    assert await configured.writer(None) == "judge:latest"
    await configured.close()
    stub.models = ["embed-only:latest", "judge:latest", "zebra:latest"]
    embedded = named(stub, "embedded")
    assert await embedded.writer(None) == "judge:latest"
    await embedded.close()


@pytest.mark.parametrize(("wanted", "said"), [("nope", "ollama pull nope"), ("embed-only", "writes no text")])
async def test_a_model_that_cannot_write_is_refused(host, wanted, said):
    with pytest.raises(ServiceUnavailable, match=said):
        await host.writer(wanted)


async def test_a_host_without_any_model_that_writes_says_what_to_pull(stub):
    stub.models = ["embed-only:latest"]
    host = named(stub, None)
    with pytest.raises(ServiceUnavailable, match=r"ollama pull qwen2\.5:7b"):
        await host.writer(None)
    await host.close()


async def test_an_answer_comes_piece_by_piece_with_the_models_own_settings(host, stub):
    stub.say = lambda asked: "Urchins [1]."
    messages = [{"role": "system", "content": "E"}, {"role": "user", "content": "What do otters eat? \ud83e"}]
    pieces = [piece async for piece in host.write("judge", messages, max_tokens=99)]
    assert "".join(pieces) == "Urchins [1]."
    (asked,) = stub.asked("/api/chat")
    assert asked["stream"] is True
    assert asked["options"] == {"num_predict": 99, "num_ctx": 4096}
    assert [message["role"] for message in asked["messages"]] == ["system", "user"]


async def test_a_host_that_fails_while_it_writes_is_an_outage(host, stub):
    stub.status = (500, "out of memory")
    with pytest.raises(ServiceUnavailable, match="out of memory"):
        [piece async for piece in host.write("judge", [{"role": "user", "content": "Why?"}], max_tokens=9)]


@pytest.mark.parametrize("status", [400, 413, 422, 500])
async def test_texts_are_cut_until_the_model_reads_them(host, stub, status):
    stub.longest_text, stub.too_long = 3000, status
    assert len(await host.embed("judge", ["short", "x" * 10_000])) == 2
    sent = [[len(text) for text in body["input"]] for body in stub.asked("/api/embed")]
    assert sent == [[5, 10_000], [5, 5000], [5, 2500]]


@pytest.mark.parametrize(("status", "blamed"), [(400, True), (422, True), (500, False)])
async def test_a_text_that_is_refused_at_every_length_is_to_blame_unless_the_host_is_out_of_order(
    host, stub, status, blamed
):
    stub.longest_text, stub.too_long = 10, status
    with pytest.raises(ServiceUnavailable, match=f"Ollama answered {status}: the input length exceeds") as failure:
        await host.embed("judge", ["x" * 1000])
    assert isinstance(failure.value, InputRefused) is blamed
    assert len(stub.asked("/api/embed")) == 4


async def test_a_text_whose_vector_ollama_cannot_write_down_is_to_blame(host, stub):
    stub.longest_text, stub.too_long = 10, 500
    stub.too_long_says = "failed to encode response: json: unsupported value: NaN"
    with pytest.raises(InputRefused, match="unsupported value: NaN"):
        await host.embed("judge", ["x" * 1000])


@pytest.mark.parametrize(
    "spelling",
    ["qwen2.5:7b", "Qwen2.5:7B", "library/qwen2.5:7b", "registry.ollama.ai/library/qwen2.5:7b", " qwen2.5:7b"],
)
async def test_a_model_is_found_in_any_spelling_and_asked_for_as_the_host_lists_it(host, stub, spelling):
    stub.loaded["qwen2.5:7b"] = 2048
    assert await host.has(spelling)
    assert await host.choose(spelling) == await host.writer(spelling) == "qwen2.5:7b"
    assert (await host.context_length(spelling), await host.window(spelling)) == (32_768, 2048)
    assert [asked["model"] for asked in stub.asked("/api/show")] == ["qwen2.5:7b"]


@pytest.mark.parametrize("spelling", ["qwen2.5", "other/qwen2.5:7b", "qwen2.5:7b:7b", "hf.co/library/qwen2.5:7b"])
async def test_another_model_is_not_found(host, spelling):
    assert not await host.has(spelling)


async def test_a_list_in_capitals_is_asked_for_as_it_is(stub):
    stub.models = ["hf.co/Maker/Judge-GGUF:Q4_K_M"]
    host = named(stub, "hf.co/maker/judge-gguf:q4_k_m")
    assert await host.choose(None) == "hf.co/Maker/Judge-GGUF:Q4_K_M"
    await host.close()


async def test_a_window_that_was_raised_is_kept(host, stub):
    stub.loaded["judge:latest"] = 2048
    await host.chat("judge", "word " * 3000, max_tokens=10)
    await host.chat("judge:latest", "short", max_tokens=10)
    assert [asked["options"]["num_ctx"] for asked in stub.asked("/api/chat")] == [8192, 8192]
    assert await host.window("judge", load=False) == 8192


async def test_a_window_that_the_request_brings_is_that_of_all_its_work(host, stub):
    with use_window("Judge", 16_384):
        await host.chat("judge", "short", max_tokens=10)
    assert stub.asked("/api/chat")[0]["options"]["num_ctx"] == 16_384
    assert stub.asked("/api/generate") == []
    assert host.windows.kept("judge") is None


async def test_a_model_that_is_not_loaded_is_told_without_loading_it(host, stub):
    assert await host.window("judge", load=False) == 0
    assert await host.window("never-heard-of", load=False) is None
    assert stub.asked("/api/generate") == []


async def all_asked(host):
    await host.check_chat("judge")
    await host.check_embedding("judge")
    async for _ in host.write("judge:latest", [{"role": "user", "content": "?"}], max_tokens=9):
        pass
    return await host.version(), await host.window("judge")


async def test_the_key_is_sent_with_every_request_and_read_anew_when_it_is_refused(stub):
    stub.key = "sk-new"
    host = OllamaHost(stub.url.replace("//", "//a:b@"), ExchangedKey("sk-old", "sk-new"), parallel=2)
    await all_asked(host)
    assert stub.authorisations[:2] == ["Bearer sk-old", "Bearer sk-new"]
    assert set(stub.authorisations[1:]) == {"Bearer sk-new"}
    await host.close()


async def test_without_a_key_none_of_the_environment_is_sent(stub, monkeypatch):
    monkeypatch.setenv("OLLAMA_API_KEY", "sk-hush")
    host = OllamaHost(stub.url, parallel=2)
    await all_asked(host)
    assert set(stub.authorisations) == {None}
    await host.close()


@pytest.mark.parametrize("status", [400, 401, 500])
async def test_a_key_that_the_host_quotes_is_in_no_message(stub, status, caplog):
    caplog.set_level("DEBUG")
    host = OllamaHost(stub.url, Fixed("sk-hush"), parallel=2)
    stub.status = (status, "bad header: Bearer sk-hush")
    for call in (host.check_chat("judge"), host.check_embedding("judge")):
        with pytest.raises(ServiceUnavailable, match=str(status)) as failure:
            await call
        assert "sk-hush" not in failure.value.message_with_place
    assert "sk-hush" not in caplog.text
    await host.close()


async def test_a_key_that_cannot_be_read_is_told(stub):
    class Away(Fixed):
        async def current(self):
            raise Unreadable("OLLAMA_API_KEY_SECRET cannot be read")

    host = OllamaHost(stub.url, Away(""), parallel=2)
    for call in (host.version(), host.check_embedding("judge")):
        with pytest.raises(ServiceUnavailable, match="OLLAMA_API_KEY_SECRET cannot be read"):
            await call
    await host.close()
