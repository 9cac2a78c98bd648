"""Where a PostgreSQL database is, and how to connect to it."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

_SCHEMES = ("postgresql", "postgres")
_TLS = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_OPTIONS = "sslmode, sslrootcert, application_name and statement_cache_size"


class BadAddress(ValueError):
    """An address that does not say where the database is. The message says what to change, and holds no secret."""


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """The parts of `postgresql://USER:PASSWORD@HOST:PORT/DATABASE?OPTIONS`."""

    host: str
    port: int
    database: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, uri: str) -> "PostgresAddress":
        """The parts of a URI. Raises `BadAddress`."""
        parts = urlsplit(uri)
        if parts.scheme not in _SCHEMES:
            raise BadAddress("begin it with postgresql://")
        try:
            host, port = parts.hostname, parts.port or 5432
        except ValueError:
            raise BadAddress("the port has to be a number up to 65535") from None
        database = unquote(parts.path.removeprefix("/"))
        if not host:
            raise BadAddress("name the host: postgresql://USER:PASSWORD@HOST:5432/DATABASE")
        if not database:
            raise BadAddress("name the database behind the host: postgresql://USER:PASSWORD@HOST:5432/DATABASE")
        user, password = (None if part is None else unquote(part) for part in (parts.username, parts.password))
        return cls(host, port, database, user, password, _options(parts.query))

    def arguments(self) -> dict[str, Any]:
        """The arguments of `asyncpg.connect`, but for the time that it may take."""
        settings = {"application_name": self.options.get("application_name", "cragside")}
        return {
            "host": self.host,
            "port": self.port,
            "database": self.database,
            "user": self.user,
            "password": self.password,
            "ssl": self._tls(),
            "server_settings": settings,
            "statement_cache_size": int(self.options.get("statement_cache_size", "100")),
        }

    def __str__(self) -> str:
        """For messages: without user and password."""
        return f"postgresql://{self.host}:{self.port}/{self.database}"

    def _tls(self) -> "ssl.SSLContext | str":
        mode, roots = self.options.get("sslmode", "prefer"), self.options.get("sslrootcert")
        if not roots:
            return mode
        context = ssl.create_default_context(cafile=roots)
        context.check_hostname = mode == "verify-full"
        return context


def _options(query: str) -> dict[str, str]:
    options = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := sorted(options.keys() - set(_OPTIONS.replace(" and", ",").split(", "))):
        raise BadAddress(f"{unknown[0]} is no option here; those are {_OPTIONS}")
    if (mode := options.get("sslmode", "prefer")) not in _TLS:
        raise BadAddress(f"sslmode has to be one of {', '.join(_TLS)}, not {mode}")
    if options.get("sslrootcert") and options.get("sslmode") not in ("verify-ca", "verify-full"):
        raise BadAddress("sslrootcert needs sslmode=verify-full or verify-ca")
    if not options.get("statement_cache_size", "0").isascii() or not options.get("statement_cache_size", "0").isdigit():
        raise BadAddress("statement_cache_size has to be a number; 0 is for pgbouncer before 1.21")
    return options
