"""The address of a PostgreSQL database, and how to connect to it."""

import json
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote

from cragside.databases.server_addresses import ENCODED, BadAddress, check_host, split_address

_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_FILES = ("sslrootcert", "sslcert", "sslkey")
_SYSTEM = "system"
# Amazon RDS signs certificates by authorities of its own, which no system has. `tools/rds_authorities.py` writes them.
_OF_RDS = Path(__file__).with_name("rds_authorities.pem")
_RDS_HOSTS = (".rds.amazonaws.com", ".rds.amazonaws.com.cn")


def tls_of(options: Mapping[str, str], host: str = "") -> ssl.SSLContext | str:
    """Return the argument `ssl` of `asyncpg.connect`. Raises `BadAddress`.

    `require` encrypts and does not verify. `verify-ca` verifies the certificate, and `verify-full` the host's name too.
    Both trust the system's authorities if no `sslrootcert` is given, where libpq looks for a file, and those of RDS for
    a host there. Without `sslmode`, such a host is verified in full.
    """
    on_rds = _is_on_rds(host)
    mode = options.get("sslmode", "verify-full" if on_rds else "prefer")
    if mode not in _MODES:
        raise BadAddress(f"sslmode has to be one of {', '.join(_MODES)}")
    verifies = mode.startswith("verify-")
    for name in _FILES:
        if name in options and not Path(options[name]).is_file() and not _is_system(name, options[name]):
            raise BadAddress(f"the file of {name} is not there")
    if "sslrootcert" in options and not verifies:
        raise BadAddress("sslrootcert needs sslmode=verify-full or verify-ca")
    if "sslkey" in options and "sslcert" not in options:
        raise BadAddress("sslkey needs sslcert")
    if "sslcert" in options and not verifies and mode != "require":
        raise BadAddress("sslcert needs sslmode=require, verify-ca or verify-full")
    return _context(mode, options, on_rds=on_rds) if verifies or mode == "require" else mode


def _is_on_rds(host: str) -> bool:
    return host.lower().rstrip(".").endswith(_RDS_HOSTS)


def _is_system(name: str, value: str) -> bool:
    return name == "sslrootcert" and value == _SYSTEM


def _context(mode: str, options: Mapping[str, str], *, on_rds: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = mode == "verify-full"
    if mode == "require":
        context.verify_mode = ssl.CERT_NONE
    try:
        roots = options.get("sslrootcert", _SYSTEM)
        if mode != "require" and roots == _SYSTEM:
            context.load_default_certs()
            if on_rds and "sslrootcert" not in options:
                context.load_verify_locations(_OF_RDS)
        elif mode != "require":
            context.load_verify_locations(roots)
    except (ssl.SSLError, OSError):
        raise BadAddress("the file of sslrootcert holds no certificate that can be read") from None
    try:
        if "sslcert" in options:
            # An empty password: otherwise a key with one would be asked for on the terminal.
            context.load_cert_chain(options["sslcert"], options.get("sslkey"), password="")
    except (ssl.SSLError, OSError):
        raise BadAddress("sslcert and sslkey are no certificate with its key, or the key has a password") from None
    return context


_FORM = "postgresql://USER:PASSWORD@HOST:5432/DATABASE"
_OPTIONS = (
    "host",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "application_name",
    "statement_cache_size",
    "auth",
)
_PORT = 5432

Password = str | Callable[[], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """The parts of `postgresql://USER:PASSWORD@HOST:PORT/DATABASE?OPTIONS`, as libpq reads them.

    A host that begins with a slash is the folder of a Unix socket. `password` may be called for each connection.
    `statement_cache_size` is None if the address leaves it open.
    """

    host: str
    port: int
    database: str
    user: str | None = None
    password: Password | None = field(default=None, repr=False)
    tls: ssl.SSLContext | str = "prefer"
    application_name: str = "cragside"
    statement_cache_size: int | None = None
    iam: bool = False

    @classmethod
    def parse(cls, uri: str) -> "PostgresAddress":
        """Parse a URI and read its certificates. Raises `BadAddress`."""
        parts = split_address(uri, "postgresql", "postgres")
        options = _options(parts.query)
        host, port = _place(parts, options)
        if not host:
            raise BadAddress(f"name the host: {_FORM}")
        database = unquote(parts.path.removeprefix("/"))
        if not database:
            raise BadAddress(f"name the database behind the host: {_FORM}")
        user, password = (None if part is None else unquote(part) for part in (parts.username, parts.password))
        on_socket = host.startswith("/")
        if not user and not on_socket:
            raise BadAddress(f"name the user: {_FORM}")
        iam = _iam(options, password, host)
        return cls(
            host,
            port,
            database,
            user or None,
            password or None,
            "disable" if on_socket else tls_of(options, host),
            options.get("application_name") or "cragside",
            _statements(options),
            iam,
        )

    @classmethod
    def of_secret(cls, text: str, place: str = "") -> "PostgresAddress":
        """Read a secret: an address, or JSON as RDS and Secrets Manager write it. Raises `BadAddress`.

        JSON has `username` and `password`, and may have `host`, `port` and `dbname`. `place` is an address without user
        and password. Its host and database win, such as those of a proxy, and its options hold.
        """
        if not text.lstrip().startswith("{"):
            if place:
                raise BadAddress("it is set, and the secret has a whole address. Unset one of them")
            return cls.parse(text)
        given = _fields(text)
        parts = split_address(place, "postgresql", "postgres") if place else SplitResult("", "", "", "", "")
        if "@" in parts.netloc:
            raise BadAddress("leave user and password out, which are in the secret")
        server = parts.netloc or f"{given.get('host', '')}:{given.get('port', _PORT)}"
        database = unquote(parts.path.removeprefix("/")) or given.get("dbname", "")
        login = ":".join(quote(given.get(name, ""), safe="") for name in ("username", "password"))
        query = f"?{parts.query}" if parts.query else ""
        return cls.parse(f"postgresql://{login}@{server}/{quote(database, safe='')}{query}")

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `asyncpg.connect`, but for the time that it may take and its statements."""
        return {
            "host": self.host,
            "port": self.port,
            "database": self.database,
            "user": self.user,
            "password": self.password,
            "ssl": self.tls,
            # pgbouncer refuses most others.
            "server_settings": {"application_name": self.application_name},
        }

    def __str__(self) -> str:
        """Return the address for messages: without user and password."""
        if self.host.startswith("/"):
            return f"postgresql:///{self.database}?host={self.host}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"postgresql://{host}:{self.port}/{self.database}"


def _fields(secret: str) -> dict[str, str]:
    """Return the fields of a secret in JSON."""
    try:
        given = json.loads(secret)
    except ValueError:
        raise BadAddress("the secret is no JSON that can be read") from None
    fields = {name: str(value) for name, value in given.items() if isinstance(value, str | int)}
    if missing := [name for name in ("username", "password") if not fields.get(name)]:
        raise BadAddress(f"the secret has no {missing[0]}")
    if not fields.get("engine", "postgres").endswith(("postgres", "postgresql")):
        raise BadAddress("the secret is that of another database")
    return fields


def _place(parts: SplitResult, options: Mapping[str, str]) -> tuple[str, int]:
    """Return host and port. `hostname` of the standard library is lower case, but the path of a socket may not be."""
    place = parts.netloc.rpartition("@")[2]
    if "," in place:
        raise BadAddress("name one host. Use a name or a proxy that leads to the server in charge")
    try:
        port = parts.port or _PORT
    except ValueError:
        raise BadAddress(f"the port has to be a number up to 65535. {ENCODED}") from None
    named = parts.hostname or ""
    if place[:3].lower() == "%2f":
        named = unquote(place.partition(":")[0])
    if "host" in options and named:
        raise BadAddress("it names two hosts. Leave the one before the database out, or the option host")
    if (other := options.get("host")) and not other.startswith("/"):
        check_host(other)
    return other or unquote(named), port


def _options(query: str) -> dict[str, str]:
    pairs = parse_qsl(query, keep_blank_values=True)
    options = dict(pairs)
    if unknown := sorted(options.keys() - set(_OPTIONS)):
        # Without a value it may be a piece of a password, in which `?` was not written as %3F.
        named = unknown[0] if options[unknown[0]] else "what follows the question mark"
        raise BadAddress(f"{named} is no option here; those are {', '.join(_OPTIONS[:-1])} and {_OPTIONS[-1]}")
    if len(options) < len(pairs):
        raise BadAddress("an option is there twice. Leave one of the two out")
    return options


def _statements(options: Mapping[str, str]) -> int | None:
    if (text := options.get("statement_cache_size")) is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > len("10000"):
        raise BadAddress("statement_cache_size has to be a number up to 10000")
    return int(text)


def _iam(options: Mapping[str, str], password: str | None, host: str) -> bool:
    if (auth := options.get("auth")) is None:
        return False
    if auth != "iam":
        raise BadAddress("auth has to be iam. Leave it out if there is a password")
    if password:
        raise BadAddress("auth=iam makes passwords itself. Leave the password out")
    if options.get("sslmode", "verify-full" if _is_on_rds(host) else "") not in ("require", "verify-ca", "verify-full"):
        raise BadAddress("auth=iam needs sslmode=verify-full, as RDS takes its tokens over TLS only")
    return True
