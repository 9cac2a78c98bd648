"""Addresses of database servers, and the error of one that cannot be used."""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

from cragside.domain.addresses import Nearness, nearness

ENCODED = "In user and password, write @ as %40, : as %3A, / as %2F, ? as %3F, # as %23 and % as %25"

_LONGEST_HOST = 253


class BadAddress(ValueError):
    """An address that does not say where the database is. The message says what to change, and holds no secret."""


def split_address(uri: str, *schemes: str) -> SplitResult:
    """Split `SCHEME://USER:PASSWORD@HOST:PORT/...`, whose scheme is one of `schemes`. Raises `BadAddress`."""
    try:
        parts = urlsplit(uri.strip())
    except ValueError:
        raise BadAddress(
            "its host cannot be read. Write an address of IPv6 in brackets, as [::1], and encode letters beyond ASCII."
            f" {ENCODED}, [ as %5B and ] as %5D"
        ) from None
    if parts.scheme not in schemes:
        raise BadAddress(f"begin it with {' or '.join(f'{scheme}://' for scheme in schemes)}")
    # Otherwise a part of the password could be taken for a host or a path and shown in messages.
    if "@" in parts.path or "@" in parts.query or "#" in uri or parts.netloc.count("@") > 1:
        raise BadAddress(f"it cannot be told where the password ends. {ENCODED}")
    check_host(parts.netloc.rpartition("@")[2])
    return parts


def check_host(place: str) -> None:
    """Raise `BadAddress` for a host that no driver can look up. `place` may have a port, or be an IPv6 address."""
    host = place if place.startswith("[") else place.partition(":")[0]
    if any(letter.isspace() or letter in "\\\0" for letter in host):
        raise BadAddress("its host has a blank or a backslash")
    # The path of a Unix socket may be written as a host.
    if not host.lower().startswith("%2f"):
        try:
            longest = len(host.encode("idna"))
        except UnicodeError:
            raise BadAddress("its host has a part that is empty, too long or of letters that no host has") from None
        if longest > _LONGEST_HOST:
            raise BadAddress(f"its host has more than {_LONGEST_HOST} characters")


def _check_place(parts: SplitResult, example: str) -> None:
    try:
        host, _ = parts.hostname, parts.port
    except ValueError:
        hint = f". {ENCODED}" if "@" in parts.netloc else ""
        raise BadAddress(f"the port has to be a number up to 65535{hint}") from None
    if not host:
        raise BadAddress(f"name the host: {example}")


_NEO4J_SCHEMES = ("neo4j", "neo4j+s", "neo4j+ssc", "bolt", "bolt+s", "bolt+ssc")


@dataclass(frozen=True, slots=True)
class Neo4jAddress:
    """A server's address, a user, the password, and the name of a database, None for the user's own."""

    uri: str
    user: str
    password: str = field(repr=False)
    database: str | None = None

    @classmethod
    def parse(
        cls,
        uri: str,
        *,
        user: str | None = None,
        password: str | None = None,
        database: str | None = None,
        password_apart: bool = False,
    ) -> "Neo4jAddress":
        """Parse `neo4j://USER:PASSWORD@HOST:PORT`. User, password and database that are given apart win.

        With `password_apart` the password is kept elsewhere, so none is needed. Raises `BadAddress`.
        """
        parts = split_address(uri, *_NEO4J_SCHEMES)
        _check_place(parts, "neo4j://HOST:7687")
        if parts.path.strip("/"):
            raise BadAddress("name the database in NEO4J_DATABASE, not behind the host")
        user = user or unquote(parts.username or "")
        password = password or unquote(parts.password or "")
        if not user or not (password or password_apart):
            raise BadAddress("set NEO4J_USERNAME and NEO4J_PASSWORD too")
        _check_neo4j_options(parts)
        bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        return cls(bare, user, password, database or None)

    def __str__(self) -> str:
        """Return the address for messages: without user, password and options."""
        return self.uri.partition("?")[0]


def _check_neo4j_options(parts: SplitResult) -> None:
    options = parse_qsl(parts.query, keep_blank_values=True)
    if parts.query and not parts.scheme.startswith("neo4j"):
        raise BadAddress("an address that begins with bolt has no options. Leave out what follows the question mark")
    if parts.query and ([name for name, _ in options] != ["policy"] or not options[0][1]):
        raise BadAddress("the only option that it can have is policy, as neo4j://HOST:7687?policy=NAME")


_REDIS_SCHEMES = ("redis", "rediss")
_REDIS_OPTIONS = ("ssl_ca_certs", "ssl_ca_path", "ssl_cert_reqs", "ssl_certfile", "ssl_check_hostname", "ssl_keyfile")

_REDIS_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_REDIS_VALUES = {
    "ssl_cert_reqs": ("required", "optional", "none"),
    "ssl_check_hostname": ("true", "false", "yes", "no", "1", "0"),
}


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """`uri` has the user and the password, `shown` is for messages."""

    uri: str = field(repr=False)
    shown: str

    @classmethod
    def parse(cls, uri: str) -> "RedisAddress":
        """Parse `redis://USER:PASSWORD@HOST:PORT/DATABASE`. Raises `BadAddress`."""
        parts = split_address(uri, *_REDIS_SCHEMES)
        _check_place(parts, "redis://HOST:6379")
        database = parts.path.strip("/")
        if database and not (database.isascii() and database.isdigit()):
            raise BadAddress("the database behind the host has to be a number: redis://HOST:6379/0")
        _check_redis_options(parts)
        shown = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
        return cls(uri.strip(), shown)

    def __str__(self) -> str:
        """Return the address for messages: without user and password."""
        return self.shown


def _check_redis_options(parts: SplitResult) -> None:
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    if len(dict(pairs)) < len(pairs):
        raise BadAddress("an option is there twice. Leave one of the two out")
    for name, value in pairs:
        if name not in _REDIS_OPTIONS:
            raise BadAddress(f"it has an unknown option; those known are {', '.join(_REDIS_OPTIONS)}")
        if parts.scheme != "rediss":
            raise BadAddress("its options are for TLS. Begin it with rediss://, or leave them out")
        if name in _REDIS_VALUES and value.lower() not in _REDIS_VALUES[name]:
            raise BadAddress(f"{name} has to be one of {', '.join(_REDIS_VALUES[name])}")
        if name in _REDIS_FILES and not _can_be_read(value):
            raise BadAddress(f"the file of {name} is missing or cannot be read")
        if name == "ssl_ca_path" and not Path(value).is_dir():
            raise BadAddress(f"the folder of {name} is missing")
    if "ssl_keyfile" in dict(pairs) and "ssl_certfile" not in dict(pairs):
        raise BadAddress("ssl_keyfile needs ssl_certfile beside it")


def _can_be_read(name: str) -> bool:
    try:
        with Path(name).open("rb"):
            return True
    except (OSError, ValueError):
        return False


@dataclass(frozen=True, slots=True)
class QdrantAddress:
    """`url` is for messages too: the key is apart from it."""

    url: str
    api_key: str = field(default="", repr=False)
    key_apart: bool = False

    @classmethod
    def parse(cls, url: str, api_key: str = "", *, key_apart: bool = False) -> "QdrantAddress":
        """Parse `https://HOST:PORT`, or one with the path of a proxy. With `key_apart`, the key is kept elsewhere.

        Raises `BadAddress`.
        """
        parts = split_address(url, "http", "https")
        _check_place(parts, "http://HOST:6333")
        if "@" in parts.netloc:
            raise BadAddress("it has a user or a password; set QDRANT_API_KEY instead")
        if parts.query or parts.fragment:
            raise BadAddress("it ends behind the port or the path: no ? and no #")
        if not (api_key.isascii() and api_key.isprintable()):
            raise BadAddress("the key in QDRANT_API_KEY has characters that a key cannot have")
        return cls(url.strip().rstrip("/"), api_key.strip(), key_apart)

    @property
    def tells_its_key(self) -> bool:
        """Return True if anybody on the way can read the key."""
        parts = urlsplit(self.url)
        keyed = bool(self.api_key or self.key_apart)
        return keyed and parts.scheme == "http" and nearness(parts.hostname or "") is not Nearness.MACHINE

    def __str__(self) -> str:
        """Return the address for messages: without the key."""
        return self.url
