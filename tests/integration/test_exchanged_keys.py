"""The secrets of Redis and of Qdrant's stand-in are exchanged while a container is open, and nothing shows them."""

import logging
import secrets
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import pytest
from redis.asyncio import Redis as Client

from cragside.bootstrap import Container
from cragside.databases.redis import RedisFailure
from cragside.entrypoints.log import trace_of
from cragside.settings import load_settings
from cragside.store.errors import LedgerError
from tests.services.qdrant_server import QdrantStandIn

if TYPE_CHECKING:
    from tests.services.redis_server import Redis

SENTINEL = "s3ntinel"


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Callable[..., Container]]:
    """Open a container, which is closed at the end. Nothing listens where its PostgreSQL would be."""
    containers: list[Container] = []

    def open_one(**variables: str) -> Container:
        unused = "postgresql://nobody:none@127.0.0.1:1/none"
        containers.append(Container(load_settings({"RAG_HOME": str(tmp_path), "POSTGRES_URI": unused, **variables})))
        return containers[-1]

    yield open_one
    for each in containers:
        await each.close()


class User:
    """A user of Redis with a password that can be changed."""

    def __init__(self, server: "Redis") -> None:
        self.name = f"exchanged_{secrets.token_hex(4)}"
        self._admin = server.uri

    def uri(self, password: str) -> str:
        parts = urlsplit(self._admin)
        return urlunsplit(parts._replace(netloc=f"{self.name}:{password}@{parts.hostname}:{parts.port}"))

    async def change(self, password: str) -> None:
        """Change the password and end all connections."""
        async with Client.from_url(self._admin) as admin:
            await admin.execute_command("ACL", "SETUSER", self.name, "on", "resetpass", f">{password}", "~*", "+@all")
            await admin.execute_command("CLIENT", "KILL", "USER", self.name)

    async def remove(self) -> None:
        async with Client.from_url(self._admin) as admin:
            await admin.execute_command("ACL", "DELUSER", self.name)


@pytest.fixture
async def user(redis: "Redis") -> AsyncIterator[User]:
    user = User(redis)
    await user.change("one")
    yield user
    await user.remove()


async def asked(container: Container) -> str:
    """Return the answer of Redis or Qdrant, or the failure with its causes."""
    redis, vectors = container.redis, container.vectors
    try:
        if redis is not None:
            await redis.ping()
            return "pong"
        assert vectors is not None
        return f"version {await vectors.server()}"
    except (RedisFailure, LedgerError) as error:
        shown = (error.unusable, repr(error), repr(error.__cause__), trace_of(error), repr(container.settings))
        return "\n".join(shown)


async def test_an_open_container_takes_up_a_new_password_of_redis(
    user: User, manager: Any, opened: Callable[..., Container]
) -> None:
    secret = manager.create_secret(Name="address", SecretString=user.uri("one"))["ARN"]
    container = opened(REDIS_URI_SECRET=secret)
    assert await asked(container) == "pong"
    manager.put_secret_value(SecretId=secret, SecretString=user.uri("two"))
    assert await asked(container) == "pong", "open connections stay"
    await user.change("two")
    assert await asked(container) == "pong"

    await user.change("three")
    assert "Check the user and the password" in await asked(container)
    manager.put_secret_value(SecretId=secret, SecretString=user.uri("three"))
    assert await asked(container) == "pong"


async def test_an_open_container_takes_up_a_new_key_of_qdrant(
    started: Callable[..., QdrantStandIn],
    manager: Any,
    opened: Callable[..., Container],
    caplog: pytest.LogCaptureFixture,
) -> None:
    listen(caplog)
    server = started("qdrant", lambda: QdrantStandIn("one"))
    secret = manager.create_secret(Name="key", SecretString="one")["ARN"]
    container = opened(QDRANT_URL=server.url, QDRANT_API_KEY_SECRET=secret)
    assert (await asked(container)).startswith("version ")
    server.exchange("two")
    manager.put_secret_value(SecretId=secret, SecretString="two")
    assert (await asked(container)).startswith("version ")

    server.exchange("three")
    manager.put_secret_value(SecretId=secret, SecretString=SENTINEL)
    failure = await asked(container)
    assert "the key of Qdrant is wrong" in failure
    assert SENTINEL not in failure + caplog.text
    manager.put_secret_value(SecretId=secret, SecretString="three")
    assert (await asked(container)).startswith("version ")


@pytest.mark.parametrize(
    "text", ["redis://{user}:{password}@{place}", "redis://{user}:{password}@127.0.0.1:1", "{password}"]
)
async def test_no_failure_or_log_has_a_password_of_redis(
    user: User, manager: Any, opened: Callable[..., Container], text: str, caplog: pytest.LogCaptureFixture
) -> None:
    listen(caplog)
    uri = text.format(user=user.name, password=SENTINEL, place=urlsplit(user.uri("one")).netloc.rpartition("@")[2])
    secret = manager.create_secret(Name="address", SecretString=uri)["ARN"]
    failure = await asked(opened(REDIS_URI_SECRET=secret))
    assert "Redis" in failure
    assert SENTINEL not in failure + caplog.text


def listen(capture: pytest.LogCaptureFixture) -> None:
    """Take every line of a log but the SDK's, which has what it receives."""
    capture.set_level(logging.DEBUG)
    for quiet in ("botocore", "boto3", "urllib3"):
        capture.set_level(logging.INFO, quiet)
