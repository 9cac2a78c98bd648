"""The proxy before a host with OpenAI's API sends the host's key, and keeps the client's own."""

import pytest

from cragside.domain.errors import ServiceUnavailable
from cragside.entrypoints.proxy.upstream import Upstream
from cragside.settings import load_settings


async def test_the_key_takes_the_place_of_basic_credentials():
    async def key():
        return "sk-hush"

    assert await Upstream("http://127.0.0.1:9", key).authorization() == b"Bearer sk-hush"
    assert await Upstream("http://a:b@127.0.0.1:9").authorization() == b"Basic YTpi"
    assert await Upstream("http://127.0.0.1:9").authorization() is None


async def test_a_key_that_cannot_be_read_is_an_outage():
    async def key():
        raise ServiceUnavailable("model_host", "What OPENAI_API_KEY_SECRET names could not be read")

    with pytest.raises(ServiceUnavailable):
        await Upstream("http://127.0.0.1:9", key).authorization()


@pytest.mark.parametrize(
    ("environment", "sent"),
    [
        ({"OPENAI_API_KEY": "sk-hush"}, None),
        ({"OPENAI_API_KEY": "sk-hush", "OLLAMA_BASE_URL": "http://gpu"}, None),
        ({"RAG_MODEL_HOST": "openai+http://gpu/v1"}, None),
        ({"OPENAI_API_KEY": "sk-hush", "RAG_MODEL_HOST": "openai+http://gpu/v1"}, "sk-hush"),
    ],
)
async def test_a_key_goes_to_a_host_with_openais_api_alone(environment, sent):
    from cragside.bootstrap import Container

    key = Container(load_settings(environment)).upstream_key
    assert (None if key is None else await key()) == sent
