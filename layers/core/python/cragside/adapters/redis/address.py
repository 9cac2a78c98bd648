"""Where a Redis database is."""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, urlunsplit

from cragside.adapters.bad_address import ENCODED, BadAddress, split_address

_SCHEMES = ("redis", "rediss")
_OPTIONS = ("ssl_ca_certs", "ssl_ca_path", "ssl_cert_reqs", "ssl_certfile", "ssl_check_hostname", "ssl_keyfile")

_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_VALUES = {
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
        """The parts of `redis://USER:PASSWORD@HOST:PORT/DATABASE`. Raises `BadAddress`."""
        parts = split_address(uri, *_SCHEMES)
        try:
            host, _ = parts.hostname, parts.port
        except ValueError:
            raise BadAddress(f"the port has to be a number up to 65535. {ENCODED}") from None
        if not host:
            raise BadAddress("name the host: redis://HOST:6379")
        database = parts.path.strip("/")
        if database and not (database.isascii() and database.isdigit()):
            raise BadAddress("the database behind the host has to be a number: redis://HOST:6379/0")
        _check_options(parts)
        shown = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
        return cls(uri.strip(), shown)

    def __str__(self) -> str:
        """For messages: without user and password."""
        return self.shown


def _check_options(parts: SplitResult) -> None:
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    if len(dict(pairs)) < len(pairs):
        raise BadAddress("an option is there twice. Leave one of the two out")
    for name, value in pairs:
        if name not in _OPTIONS:
            raise BadAddress(f"it has an unknown option; those known are {', '.join(_OPTIONS)}")
        if parts.scheme != "rediss":
            raise BadAddress("its options are for TLS. Begin it with rediss://, or leave them out")
        if name in _VALUES and value.lower() not in _VALUES[name]:
            raise BadAddress(f"{name} has to be one of {', '.join(_VALUES[name])}")
        if name in _FILES and not _can_be_read(value):
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
