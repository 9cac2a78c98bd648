"""The proxy before a host with OpenAI's API sends the host's key, and keeps the client's own."""

import pytest
from pydantic import SecretStr

from cragside.adapters.aws.secrets import Secrets
from cragside.bootstrap import Container
from cragside.domain.errors import ServiceUnavailable
from cragside.entrypoints.proxy.upstream import Upstream
from cragside.settings import load_settings


async def test_the_key_takes_the_place_of_basic_credentials():
    async def key():
        return "sk-hush"

    assert await Upstream("http://127.0.0.1:9", key).authorization() == b"Bearer sk-hush"
    assert await Upstream("http://a:b@127.0.0.1:9").authorization() == b"Basic YTpi"
    assert await Upstream("http://127.0.0.1:9").authorization() is None


BY_REFERENCE = {"RAG_MODEL_HOST": "openai+http://gpu/v1", "OPENAI_API_KEY_SECRET": "arn:of-the-key"}


class SecretsManager:
    """Record the container's requests to AWS' client."""

    def __init__(self, **texts):
        self.texts = texts

    def get_secret_value(self, *, SecretId):  # noqa: N803 (the SDK's name)
        return {"SecretString": self.texts[SecretId]}


async def test_a_key_by_reference_is_read_from_its_secret():
    secrets = Secrets(lambda _: SecretsManager(**{"arn:of-the-key": " sk-hush\n"}))
    key = Container(load_settings(BY_REFERENCE), secrets=secrets).upstream_key
    assert await Upstream("http://gpu", key).authorization() == b"Bearer sk-hush"


async def test_ollamas_key_is_read_from_its_secret_too():
    secrets = Secrets(lambda _: SecretsManager(**{"arn:of-the-key": " sk-hush\n"}))
    given = {"OLLAMA_BASE_URL": "http://gpu", "OLLAMA_API_KEY_SECRET": "arn:of-the-key"}
    key = Container(load_settings(given), secrets=secrets).upstream_key
    assert await Upstream("http://gpu", key).authorization() == b"Bearer sk-hush"


async def test_a_key_that_cannot_be_read_is_an_outage():
    key = Container(load_settings(BY_REFERENCE), secrets=Secrets(lambda _: SecretsManager())).upstream_key
    with pytest.raises(ServiceUnavailable, match="OPENAI_API_KEY_SECRET") as outage:
        await Upstream("http://gpu", key).authorization()
    assert "arn" not in outage.value.message


@pytest.mark.parametrize(
    ("environment", "sent"),
    [
        ({"OPENAI_API_KEY": "sk-hush"}, None),
        ({"OPENAI_API_KEY": "sk-hush", "OLLAMA_BASE_URL": "http://gpu"}, None),
        ({"RAG_MODEL_HOST": "openai+http://gpu/v1"}, None),
        ({"OPENAI_API_KEY": "sk-hush", "RAG_MODEL_HOST": "openai+http://gpu/v1"}, "sk-hush"),
        ({"OLLAMA_API_KEY": "sk-hush"}, None),
        ({"OLLAMA_API_KEY": "sk-hush", "OLLAMA_HOST": "gpu"}, None),
        ({"OLLAMA_API_KEY": "sk-hush", "OLLAMA_BASE_URL": "http://gpu"}, "sk-hush"),
        ({"OLLAMA_API_KEY": "sk-hush", "RAG_MODEL_HOST": "ollama+http://gpu"}, "sk-hush"),
        ({"OLLAMA_API_KEY": "sk-hush", "RAG_MODEL_HOST": "openai+http://gpu/v1"}, None),
        ({"OLLAMA_API_KEY": "sk-a", "OPENAI_API_KEY": "sk-b", "RAG_MODEL_HOST": "openai+http://gpu/v1"}, "sk-b"),
    ],
)
async def test_a_key_goes_to_the_host_that_it_is_for_alone(environment, sent):
    key = Container(load_settings(environment)).upstream_key
    assert (None if key is None else await key()) == sent


async def test_a_host_that_refuses_the_key_is_an_outage_and_its_words_stay_here(start):
    proxied = await start(model_host="openai+http://127.0.0.1:{port}/v1", openai_api_key=SecretStr("sk-hush"))
    proxied.ollama.answer = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 14\r\n\r\nno key sk-hush"
    reply = await proxied.ask("GET /v1/models", None, (b"Authorization: Bearer client",))
    assert proxied.ollama.requests[0].header(b"authorization") == [b"Bearer sk-hush"]
    assert reply.status == 503
    assert b"refuses the key that cragside has for it" in reply.body
    assert b"sk-hush" not in reply.body


async def test_ollamas_key_takes_the_place_of_what_a_client_sends(start):
    proxied = await start(ollama_api_key=SecretStr("sk-hush"))
    for sent in ((), (b"Authorization: Bearer client",), (b"X-API-Key: client",)):
        assert (await proxied.ask("GET /api/tags", None, sent)).status == 200
    assert {tuple(each.header(b"authorization")) for each in proxied.ollama.requests} == {(b"Bearer sk-hush",)}
    assert [each.header(b"x-api-key") for each in proxied.ollama.requests] == [[], [], []]


async def test_a_host_without_a_key_of_ours_refuses_the_client_itself(start):
    proxied = await start(model_host="openai+http://127.0.0.1:{port}/v1")
    proxied.ollama.answer = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno"
    reply = await proxied.ask("GET /v1/models", None, (b"Authorization: Bearer client",))
    assert (reply.status, reply.body) == (401, b"no")
