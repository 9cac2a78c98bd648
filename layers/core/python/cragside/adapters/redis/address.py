"""Where a Redis database is."""

from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlunsplit

from cragside.adapters.bad_address import ENCODED, BadAddress, split_address

_SCHEMES = ("redis", "rediss")
_OPTIONS = ("ssl_ca_certs", "ssl_ca_path", "ssl_cert_reqs", "ssl_certfile", "ssl_check_hostname", "ssl_keyfile")


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
        for name, _ in parse_qsl(parts.query, keep_blank_values=True):
            if name not in _OPTIONS:
                raise BadAddress(f"it has an unknown option; those known are {', '.join(_OPTIONS)}")
            if parts.scheme != "rediss":
                raise BadAddress("its options are for TLS. Begin it with rediss://, or leave them out")
        shown = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
        return cls(uri.strip(), shown)

    def __str__(self) -> str:
        """For messages: without user and password."""
        return self.shown
