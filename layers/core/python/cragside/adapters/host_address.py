"""Addresses of hosts, with their credentials kept apart."""

from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit, urlunsplit

import aiohttp


@dataclass(frozen=True, slots=True)
class HostAddress:
    """An address without credentials, and the credentials, which no message shows."""

    url: str
    credentials: tuple[str, str] | None = field(repr=False)

    @classmethod
    def parse(cls, base_url: str) -> "HostAddress":
        """Split `user:password@` off an address."""
        parts = urlsplit(base_url if "://" in base_url else f"http://{base_url}")
        bare = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))
        if parts.username is None:
            return cls(bare, None)
        return cls(bare, (unquote(parts.username), unquote(parts.password or "")))

    @property
    def authorization(self) -> dict[str, str]:
        """The header with the credentials, if there are any."""
        return {"Authorization": aiohttp.encode_basic_auth(*self.credentials)} if self.credentials else {}
