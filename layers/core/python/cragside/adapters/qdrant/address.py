"""Where a Qdrant server is."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from cragside.adapters.bad_address import BadAddress, split_address
from cragside.domain.addresses import Nearness, nearness


@dataclass(frozen=True, slots=True)
class QdrantAddress:
    """`url` is for messages too: the key is apart from it."""

    url: str
    api_key: str = field(default="", repr=False)
    key_apart: bool = False

    @classmethod
    def parse(cls, url: str, api_key: str = "", *, key_apart: bool = False) -> "QdrantAddress":
        """`https://HOST:PORT`, or with a path where a proxy has one. With `key_apart`, the key is kept elsewhere.

        Raises `BadAddress`.
        """
        parts = split_address(url, "http", "https")
        try:
            host, _ = parts.hostname, parts.port
        except ValueError:
            raise BadAddress("the port has to be a number up to 65535") from None
        if not host:
            raise BadAddress("name the host: http://HOST:6333")
        if "@" in parts.netloc:
            raise BadAddress("it has a user or a password; set QDRANT_API_KEY instead")
        if parts.query or parts.fragment:
            raise BadAddress("it ends behind the port or the path: no ? and no #")
        if not (api_key.isascii() and api_key.isprintable()):
            raise BadAddress("the key in QDRANT_API_KEY has characters that a key cannot have")
        return cls(url.strip().rstrip("/"), api_key.strip(), key_apart)

    @property
    def tells_its_key(self) -> bool:
        """Whether anybody on the way can read the key."""
        parts = urlsplit(self.url)
        keyed = bool(self.api_key or self.key_apart)
        return keyed and parts.scheme == "http" and nearness(parts.hostname or "") is not Nearness.MACHINE

    def __str__(self) -> str:
        """For messages: without the key."""
        return self.url
