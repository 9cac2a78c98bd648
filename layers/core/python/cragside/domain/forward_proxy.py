"""Finds the HTTP proxy by which the environment has a host asked: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY.

Every client of cragside that may leave the local network asks here, and no library reads these variables for it: each
library reads them in a way of its own, and some fail at a proxy or an entry that they do not know.
"""

import base64
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_network
from urllib.parse import SplitResult, quote, unquote, urlsplit
from urllib.request import getproxies_environment

from cragside.domain.addresses import Nearness, Network, host_address, nearness

_PORTS = {"http": 80, "https": 443}
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,15}://")
_WITH_PORT = re.compile(r"(.{1,255}):([0-9]{1,5})")
_log = logging.getLogger("cragside")


@dataclass(frozen=True, slots=True)
class ForwardProxy:
    """An HTTP proxy, and the credentials in its address, which no message shows."""

    host: str
    port: int
    credentials: tuple[str, str] | None = field(repr=False)

    @property
    def url(self) -> str:
        """The address without credentials."""
        return f"http://{self._authority}"

    @property
    def signed_url(self) -> str:
        """The address with credentials, for libraries that make a header of them."""
        signature = ":".join(quote(part, safe="") for part in self.credentials) if self.credentials else ""
        return f"http://{signature}@{self._authority}" if signature else self.url

    @property
    def headers(self) -> dict[str, str]:
        """The header with the credentials, if there are any."""
        if self.credentials is None:
            return {}
        return {"Proxy-Authorization": f"Basic {base64.b64encode(':'.join(self.credentials).encode()).decode()}"}

    @property
    def _authority(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def forward_proxy(url: str) -> ForwardProxy | None:
    """Return the proxy for `url`, None if its host is asked directly.

    Hosts of this machine and of local networks are asked directly. A proxy that is not an HTTP proxy is not used; the
    log says so.
    """
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:  # whoever uses the address tells what is wrong with it
        return None
    if not host or nearness(host) < Nearness.PUBLIC:
        return None
    found = getproxies_environment()
    if any(_names(entry, host, port) for entry in _entries(found.get("no", ""))):
        return None
    name = parts.scheme if found.get(parts.scheme) else "all"
    address = found.get(name, "").strip()
    return _parsed(f"{name.upper()}_PROXY", address) if address else None


def signed_proxy(url: str) -> str | None:
    """Return the address of the proxy for `url` with its credentials, for libraries that make a header of them."""
    proxy = forward_proxy(url)
    return proxy.signed_url if proxy else None


def way_to(url: str) -> str:
    """Return the words for messages about a host that does not answer: " through ..." if a proxy is on the way."""
    proxy = forward_proxy(url)
    return f" through the proxy {proxy.url}" if proxy else ""


@cache
def _parsed(variable: str, address: str) -> ForwardProxy | None:
    """The proxy at an address, which may have no scheme. None, and a line in the log, if it is not an HTTP proxy's."""
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        if parts.scheme == "http" and parts.hostname:
            return ForwardProxy(parts.hostname, parts.port or _PORTS["http"], _credentials(parts))
        reason = f"a proxy of the kind {parts.scheme[:16]}"
    except ValueError:
        reason = "an address that is not valid"
    _log.warning(
        "%s has %s, which cragside does not use: it asks hosts directly. Give it an HTTP proxy (http://HOST:PORT), or "
        "name the hosts in NO_PROXY.",
        variable,
        reason,
    )
    return None


def _credentials(parts: SplitResult) -> tuple[str, str] | None:
    return None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))


def _entries(listed: str) -> Iterator[str]:
    for entry in listed.lower().replace(",", " ").split():
        yield _SCHEME.sub("", entry, count=1).rstrip("/")


def _names(entry: str, host: str, port: int) -> bool:
    """Tell if an entry of NO_PROXY names the host: *, a name, a domain, an address or a range, maybe with a port."""
    if entry == "*":
        return True
    network = _network(entry)
    with_port = _WITH_PORT.fullmatch(entry) if network is None else None
    if with_port:
        if int(with_port[2]) != port:
            return False
        entry, network = with_port[1], _network(with_port[1])
    if network is not None:
        address = host_address(host)
        return address is not None and address in network
    domain = entry.removeprefix("*").strip(".")
    return bool(domain) and (host == domain or host.endswith(f".{domain}"))


def _network(entry: str) -> Network | None:
    address, slash, length = entry.partition("/")
    try:
        return ip_network(address.strip("[]") + slash + length, strict=False)
    except ValueError:
        return None
