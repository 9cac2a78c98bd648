"""The real pgbouncer of Debian in transaction mode, in front of a PostgreSQL."""

from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from tests.services import debian
from tests.services.server import LoggingServer
from tests.services.tools import run

_CONFIGURATION = """\
[databases]
* = host={host} port={port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {users}
stats_users = {user}
pool_mode = transaction
max_prepared_statements = 0
default_pool_size = {pool}
max_client_conn = 500
max_db_connections = {pool}
server_connect_timeout = 2
server_login_retry = 1
query_wait_timeout = {patience}
"""


class PgbouncerServer(LoggingServer):
    """One with few connections to the server of an address, and all that server's databases. Keeps no statements.

    It turns away who waits for a connection for longer than its patience, in seconds.
    """

    unprivileged = True
    ready = "process up"

    def __init__(self, upstream: str, *, pool: int = 4, patience: int = 3) -> None:
        super().__init__("pgbouncer")
        self._upstream = urlsplit(upstream)
        self._pool = pool
        self._patience = patience

    @property
    def uri(self) -> str:
        """Its address, for the same database as the server's."""
        return self.through(urlunsplit(self._upstream))

    def through(self, uri: str) -> str:
        """The address of a database of the server, by way of pgbouncer."""
        return through(uri, self.port)

    def version(self) -> str:
        """Return name and version as the program prints them."""
        return run([str(_program()), "--version"]).splitlines()[0]

    def command(self) -> list[str]:
        """The program, with its configuration in its folder."""
        users = self.home / "users.txt"
        users.write_text(f'"{unquote(self._upstream.username or "")}" "{unquote(self._upstream.password or "")}"\n')
        configuration = self.home / "pgbouncer.ini"
        configuration.write_text(
            _CONFIGURATION.format(
                host=self._upstream.hostname,
                port=self._upstream.port or 5432,
                listen=self.port,
                users=users,
                user=unquote(self._upstream.username or ""),
                pool=self._pool,
                patience=self._patience,
            )
        )
        return [str(_program()), str(configuration)]


class Pgbouncer:
    """A running pgbouncer."""

    def __init__(self, uri: str) -> None:
        self.uri = uri

    def through(self, uri: str) -> str:
        """The address of a database of the server behind it, by way of pgbouncer."""
        return through(uri, urlsplit(self.uri).port)


def through(uri: str, port: int | None) -> str:
    """A PostgreSQL address that leads to another port of this machine."""
    parts = urlsplit(uri)
    credentials = parts.netloc.rpartition("@")[0]
    return urlunsplit(parts._replace(netloc=f"{credentials}@127.0.0.1:{port}"))


def _program() -> Path:
    return debian.unpacked() / "usr/sbin/pgbouncer"
