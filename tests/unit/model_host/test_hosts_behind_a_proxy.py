"""Every client reaches a public host by the HTTP proxy of the environment, and a local one whatever it names."""

import asyncio
import json
import os
import subprocess
import sys

import pytest

from cragside.adapters.ollama.host import OllamaHost
from cragside.adapters.openai import OpenAIHost
from cragside.adapters.rerank import RerankEndpoint
from cragside.adapters.searxng import SearxngSearch
from cragside.client import Client
from cragside.databases.gate import ServerFailure
from cragside.databases.qdrant import QdrantDatabase
from cragside.databases.renewable import Fixed
from cragside.databases.server_addresses import QdrantAddress
from cragside.domain.errors import CragsideError, ServiceUnavailable
from tests.services.http_proxy import HttpProxy
from tests.services.stub_ollama import StubOllama
from tests.services.tools import free_port

PUBLIC = "http://models.example.com:8000"
ODD = {"ALL_PROXY": "socks5://127.0.0.1:1080", "https_proxy": "socks://127.0.0.1:1", "NO_PROXY": "::1,[::1],[,http://["}
NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
async def stub():
    async with StubOllama(lambda _: "yes") as stub:
        stub.refusals = dict.fromkeys(("/search", "/rerank", "/collections", "/bucket"), 418)
        yield stub


@pytest.fixture
async def proxy(stub, monkeypatch):
    async with HttpProxy(stub.port, "user:hush") as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        yield proxy


async def asked_ollama(url):
    host = OllamaHost(url, parallel=1, chat_model="judge")
    try:
        await host.check_chat("judge")
        return await host.embed("judge", ["a text"])
    finally:
        await host.close()


async def asked_openai(url):
    host = OpenAIHost(f"{url}/v1", Fixed("sk-hush"), parallel=1)
    try:
        await host.check_chat("judge")
        return await host.embed("judge", ["a text"])
    finally:
        await host.close()


async def asked_searxng(url):
    search = SearxngSearch(url, rewriter=None)
    try:
        return await search.search("question")
    finally:
        await search.close()


async def asked_reranker(url):
    endpoint = RerankEndpoint(f"{url}/rerank", Fixed("sk-hush"), model=None, parallel=1)
    try:
        return await endpoint.scores("question", ["text"])
    finally:
        await endpoint.close()


async def asked_qdrant(url):
    database = QdrantDatabase(QdrantAddress(url, "sk-hush"), most=1)
    try:
        return await database.run(lambda client: client.get_collections())
    except ServerFailure as failure:
        raise ServiceUnavailable("qdrant", failure.reason) from failure
    finally:
        await database.close()


async def asked_cragside(url):
    async with Client(url, token="sk-hush") as client:
        return await client.get("/api/version")


async def uploaded(url):
    await Client("http://127.0.0.1:1").send_elsewhere(f"{url}/bucket", {"key": "k"}, b"content")


async def reached(ask, url):
    """Tell if the host answered, be it with the refusal of what the stub does not speak."""
    try:
        await ask(url)
    except CragsideError as error:
        return "418" in error.message
    return True


CLIENTS = [asked_ollama, asked_openai, asked_searxng, asked_reranker, asked_qdrant, asked_cragside, uploaded]


@pytest.mark.parametrize("ask", CLIENTS)
async def test_a_public_host_is_asked_by_the_proxy(ask, stub, proxy):
    assert await reached(ask, PUBLIC)
    assert proxy.lines
    assert all(f" {PUBLIC}/" in line for line in proxy.lines)


@pytest.mark.parametrize("ask", CLIENTS)
async def test_a_public_host_with_tls_is_reached_by_a_tunnel(ask, proxy, caplog):
    caplog.set_level("DEBUG")
    with pytest.raises(CragsideError) as failure:  # what answers behind the proxy speaks no TLS
        await ask("https://models.example.com:8443")
    assert proxy.lines[0] == "CONNECT models.example.com:8443 HTTP/1.1"
    assert "hush" not in failure.value.message_with_place + caplog.text


@pytest.mark.parametrize("ask", CLIENTS)
async def test_a_local_host_is_asked_directly(ask, stub, proxy):
    assert await reached(ask, stub.url)
    assert (bool(stub.calls), proxy.lines) == (True, [])


async def test_a_host_that_no_proxy_names_is_asked_directly(proxy, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "[::1],.example.com")
    with pytest.raises(CragsideError):
        await asked_ollama(PUBLIC)
    assert proxy.lines == []


@pytest.mark.parametrize("ask", [asked_ollama, asked_openai, asked_searxng, asked_reranker, asked_cragside])
async def test_a_proxy_that_does_not_answer_is_named_without_its_credentials(ask, monkeypatch, caplog):
    caplog.set_level("DEBUG")
    port = free_port()
    monkeypatch.setenv("HTTP_PROXY", f"http://user:hush@127.0.0.1:{port}")
    with pytest.raises(CragsideError, match=f"through the proxy http://127.0.0.1:{port}") as failure:
        await ask(PUBLIC)
    assert "hush" not in failure.value.message_with_place + caplog.text


@pytest.mark.parametrize("ask", CLIENTS)
async def test_odd_proxies_of_the_environment_end_nothing(ask, stub, monkeypatch):
    for name, value in ODD.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OPENAI_PROXY", "socks5://127.0.0.1:1080")
    assert await reached(ask, stub.url)
    assert stub.calls


LOADED = """
import json, sys
from cragside.adapters.ollama.chat_client import chat_client
from cragside.adapters.openai import OpenAIHost
import httpx, ollama
chat_client("http://127.0.0.1:1", httpx.AsyncBaseTransport())
print(json.dumps([httpx.Client.__name__, ollama._client._client.__class__.__name__]))
"""


@pytest.mark.parametrize("odd", [ODD, {"all_proxy": "socks://"}, {"HTTP_PROXY": "http://host:port"}])
async def test_the_libraries_are_loaded_with_an_odd_environment(odd):
    kept = {name: value for name, value in os.environ.items() if name.upper() not in NAMES}
    loading = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", LOADED], env=kept | odd, capture_output=True, check=False, timeout=60
    )
    assert json.loads(loading.stdout or b"null") == ["Client", "Client"], loading.stderr[-500:]
