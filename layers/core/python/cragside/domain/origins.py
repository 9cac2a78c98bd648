"""Origins of web pages, and patterns that allow them."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Self

_DEFAULT_PORTS = {"http": 80, "https": 443}
_WEB = re.compile(r"(?P<scheme>https?)://(?P<host>[a-z0-9_][a-z0-9_.-]*|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?")
# Schemes of applications with pages of their own: `app://obsidian.md`, `chrome-extension://<id>`, `file://`.
_APPLICATION = re.compile(r"(?P<scheme>(?!https?:)[a-z][a-z0-9+.-]*)://(?P<host>[!-~]*)")
_OPAQUE = "null"
_HOW = (
    "write origins as browsers send them (names in ASCII), separated by commas, such as https://app.example, "
    "http://nas.lan:3000, https://*.app.example, http://nas.lan:* or chrome-extension://*. There is no * for all"
)


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a page. `port` defaults to that of the scheme; it is None for schemes of applications."""

    scheme: str
    host: str = ""
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse an origin as browsers send it, in lower case, without credentials or path; None if it is invalid."""
        if text == _OPAQUE:
            return cls(_OPAQUE)
        web = _WEB.fullmatch(text)
        if web is None:
            other = _APPLICATION.fullmatch(text)
            return None if other is None else cls(other["scheme"], other["host"])
        host, port = _host(web["host"]), int(web["port"] or _DEFAULT_PORTS[web["scheme"]])
        return None if host is None or port > 65535 else cls(web["scheme"], host, port)

    @property
    def is_web(self) -> bool:
        """Whether a web server sent the page."""
        return self.scheme in _DEFAULT_PORTS


@dataclass(frozen=True, slots=True)
class OriginPattern:
    """Allows one origin, or several with `*` as the port, the subdomain, or the host of an application."""

    origin: Origin
    any_port: bool = False
    any_subdomain: bool = False
    any_host: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a pattern. Raises `ValueError` that says how to write patterns, and does not quote this one."""
        scheme, separator, rest = text.strip().lower().partition("://")
        web, rest = scheme in _DEFAULT_PORTS, rest.removesuffix("/")
        any_port, any_subdomain, any_host = web and rest.endswith(":*"), web and rest.startswith("*."), rest == "*"
        if not web and any_host:
            rest = ""
        if web:
            rest = rest.removesuffix(":*").removeprefix("*.")
        origin = Origin.parse(f"{scheme}{separator}{rest}")
        # A single name after `*.` would allow all of `com`.
        if origin is None or "*" in origin.host or (any_subdomain and "." not in origin.host.strip(".")):
            raise ValueError(_HOW)
        return cls(origin, any_port, any_subdomain, any_host)

    def allows(self, origin: Origin) -> bool:
        """Whether pages of the origin are allowed."""
        if origin.scheme != self.origin.scheme:
            return False
        if self.any_subdomain:
            host = origin.host.endswith(f".{self.origin.host}") and len(origin.host) > len(self.origin.host) + 1
        else:
            host = self.any_host or origin.host == self.origin.host
        return host and (self.any_port or origin.port == self.origin.port)


def origin_patterns(text: str) -> tuple[OriginPattern, ...]:
    """Parse a comma-separated list of patterns. Raises `ValueError` with the number of the first invalid entry."""
    patterns = []
    for number, entry in enumerate(text.split(","), start=1):
        try:
            patterns.append(OriginPattern.parse(entry))
        except ValueError as error:
            raise ValueError(f"Entry {number} is not an origin: {error}") from None
    return tuple(patterns)


def _host(written: str) -> str | None:
    """The host in canonical form; None for an invalid IPv6 address."""
    if not written.startswith("["):
        return written
    try:
        return f"[{ipaddress.IPv6Address(written[1:-1])}]"
    except ValueError:
        return None
