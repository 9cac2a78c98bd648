"""The real Redis of Debian, on a free loopback port.

python -m tests.services.redis_server        # prints the address, serves until interrupted
"""

import secrets
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import redis
import redis.asyncio

from tests.services import debian
from tests.services.server import LoggingServer
from tests.services.tools import Unavailable

_CONFIGURATION = """\
bind 127.0.0.1
port {port}
requirepass {password}
dir {home}
databases 4096
save ""
appendonly {appendonly}
appendfsync no
set-proc-title no
"""
_COUNTER = "cragside:test:databases"


class RedisServer(LoggingServer):
    """One that keeps its data through a crash. Raises `Unavailable` from `start`."""

    ready = "Ready to accept connections"

    def __init__(self) -> None:
        super().__init__("redis")
        self._password = secrets.token_hex(8)
        # "no" has it read its RDB file when it starts.
        self.appendonly = "yes"

    @property
    def uri(self) -> str:
        """Its address, with the password."""
        return f"redis://:{self._password}@127.0.0.1:{self.port}/0"

    def version(self) -> str:
        """Return name and version as the server tells them."""
        return Redis(self.uri).version()

    def command(self) -> list[str]:
        """The program, with its configuration in its folder."""
        configuration = self.home / "redis.conf"
        given = {"port": self.port, "password": self._password, "home": self.home, "appendonly": self.appendonly}
        configuration.write_text(_CONFIGURATION.format(**given))
        return [str(programs() / "redis-server"), str(configuration)]


class Redis:
    """A running server, in which each test gets an empty database."""

    def __init__(self, uri: str) -> None:
        self.uri = uri

    @asynccontextmanager
    async def database(self) -> AsyncIterator[str]:
        """The address of an empty database, which is emptied afterwards."""
        async with redis.asyncio.from_url(self.uri) as shared:
            most = int((await shared.config_get("databases"))["databases"])
            address = ""
            for _ in range(most):
                address = self.address(1 + await shared.incr(_COUNTER) % (most - 1))
                async with redis.asyncio.from_url(address) as candidate:
                    if not await candidate.dbsize():
                        break
            else:
                raise Unavailable(f"all {most} databases of Redis are in use")
        yield address
        async with redis.asyncio.from_url(address) as used:
            await used.flushdb()

    def address(self, number: int) -> str:
        """The address of one of its databases."""
        return urlunsplit(urlsplit(self.uri)._replace(path=f"/{number}"))

    def version(self) -> str:
        """Return name and version as the server tells them. Raises `Unavailable` if it does not answer."""
        try:
            with redis.from_url(self.uri, socket_connect_timeout=5) as client:
                return f"Redis {client.info('server')['redis_version']}"
        except redis.RedisError as error:
            raise Unavailable(f"Redis did not answer: {type(error).__name__}") from error


def programs() -> Path:
    """The folder of `redis-server` and `redis-cli`. Raises `Unavailable`."""
    return debian.unpacked() / "usr/bin"


def main() -> None:
    """Serve until interrupted."""
    with RedisServer() as running, suppress(KeyboardInterrupt):
        print(running.uri, flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
