import asyncio
import os
import signal
import socket
from contextlib import asynccontextmanager, nullcontext

import aiohttp
import boto3
import pytest
from moto import mock_aws
from proxy_stub import faked

from cragside.bootstrap import Container
from cragside.domain.errors import ConfigurationError
from cragside.entrypoints.proxy import server
from cragside.settings import Settings, load_settings
from tests.clocks import MovedClock


class Exchanged:
    """A secret whose token is exchanged now and then."""

    def __init__(self, token):
        self.token = token

    def value(self):
        return (self.token,)

    def keep_fresh(self):
        return nullcontext()


@asynccontextmanager
async def serving(container):
    """The address that a server says, which has to end on a signal."""
    said = asyncio.Queue()
    running = asyncio.create_task(
        server.serve(container, server.listen("127.0.0.1", 0), "127.0.0.1", announce=said.put_nowait)
    )
    async with asyncio.timeout(20):
        yield (await said.get()).split()[-1]
        os.kill(os.getpid(), signal.SIGTERM)
        await running


async def test_it_says_where_it_listens_answers_and_ends_on_a_signal():
    container = faked(Settings(ollama_base_url="http://127.0.0.1:9"))
    async with (
        serving(container) as address,
        aiohttp.ClientSession() as session,
        session.get(f"{address}/healthz") as reply,
    ):
        assert reply.status == 200


async def test_a_token_that_is_exchanged_is_exchanged_for_both_layers_at_once():
    secret = Exchanged("old")
    container = faked(Settings(ollama_base_url="http://127.0.0.1:9", api_token_secret="a-secret"), secret=secret)
    async with serving(container) as address, aiohttp.ClientSession() as session:

        async def status(token, path):
            async with session.get(f"{address}{path}", headers={"X-API-Key": token}) as reply:
                return reply.status

        assert [await status("old", path) for path in ("/openapi.json", "/api/tags")] == [200, 502]
        secret.token = "new"
        assert [await status("old", path) for path in ("/openapi.json", "/api/tags")] == [401, 401]
        assert [await status("new", path) for path in ("/openapi.json", "/api/tags")] == [200, 502]


async def test_a_secret_that_is_exchanged_is_taken_up_while_it_serves(monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        manager = boto3.client("secretsmanager")
        arn = manager.create_secret(Name="token", SecretString="old")["ARN"]
        settings = load_settings({"RAG_HOME": str(tmp_path), "RAG_API_TOKEN_SECRET": arn})
        container = Container(settings, clock=(clock := MovedClock()))
        async with serving(container) as address, aiohttp.ClientSession() as session:

            async def status(token):
                headers = {"Authorization": f"Bearer {token}"}
                async with session.post(f"{address}/v1/enrich", json={"prompt": "x"}, headers=headers) as reply:
                    return reply.status

            assert [await status(token) for token in ("old", "new")] == [200, 401]
            manager.put_secret_value(SecretId=arn, SecretString="new")
            clock.move(301)
            while await status("new") != 200:
                await asyncio.sleep(0.01)
            assert await status("old") == 401


def test_an_address_belongs_to_one_server():
    with server.listen("127.0.0.1", 0) as ours:
        ours.listen()
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            with pytest.raises(OSError, match="in use"):
                other.bind(ours.getsockname())


def test_a_taken_port_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"127.0.0.1:{port}.*in use"):
            server.listen("127.0.0.1", port)


@pytest.mark.parametrize("host", ["no.such.name.invalid", "203.0.113.1"])
def test_an_address_that_is_not_ours_is_named(host):
    with pytest.raises(ConfigurationError, match="Cannot listen"):
        server.listen(host, 0)


def test_the_loop_runs():
    with asyncio.Runner(loop_factory=server.loop_factory()) as runner:
        assert runner.run(asyncio.sleep(0, "done")) == "done"
