"""Decides which URLs may be fetched, and at which addresses, for the first URL and each redirect."""

import asyncio
import re
import socket
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_network
from typing import Protocol

from typing_extensions import override
from yarl import URL

from cragside.domain.addresses import IpAddress, Nearness, Network, is_metadata, is_public, nearness, parse_address
from cragside.domain.errors import ConfigurationError


class Resolver(Protocol):
    """Resolves names to addresses."""

    async def addresses(self, name: str) -> Sequence[str]:
        """All IPv4 and IPv6 addresses of a name. Raises `OSError` if there are none."""

    async def close(self) -> None:
        """Release resources."""


class SystemResolver(Resolver):
    """Asks the operating system, in its own threads: a name that never resolves blocks nothing else."""

    def __init__(self, *, parallel: int = 5) -> None:
        self._parallel = parallel
        self._threads: ThreadPoolExecutor | None = None

    @override
    async def addresses(self, name: str) -> Sequence[str]:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._parallel, thread_name_prefix="cragside-names")
        found = await asyncio.get_running_loop().run_in_executor(self._threads, _lookup, name)
        return list(dict.fromkeys(found))

    @override
    async def close(self) -> None:
        """End the threads. A thread that waits for an answer ends when it comes."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None


def _lookup(name: str) -> list[str]:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise OSError("is not a valid name") from error
    return [str(entry[4][0]) for entry in found]


LONGEST_URL = 4096
# The ports of web servers. On other ports, public addresses also have databases, mail servers and consoles.
WEB_PORTS = frozenset({80, 443, 8000, 8008, 8080, 8443, 8888})

_ABSOLUTE = re.compile(r"(?i)https?://[^/?#]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_AUTHORITY = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?//([^/?#]*)")
# Characters that parsers treat differently, so one would check another URL than the next one connects to.
_UNSAFE = re.compile(r"[\x00-\x20\x7f-\xa0\\\ud800-\udfff\u2028\u2029\ufeff]")
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
# Operating systems read a last label like this as part of an IPv4 address: 2130706433, 0x7f.1, 127.1.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LONGEST_NAME = 253


class AddressRefused(Exception):
    """The guard refuses a URL. The message gives the reason, but no resolved address."""


class Guard:
    """Admits public hosts, and those of `allow`: names (`wiki.example`, `*.example`), addresses and CIDR ranges.

    Allowed hosts may have any port and any address but a metadata service's. Raises `ConfigurationError` for an invalid
    entry of `allow`.
    """

    def __init__(self, allow: Iterable[str] = ()) -> None:
        self._names: set[str] = set()
        self._networks: list[Network] = []
        for entry in filter(None, (entry.strip().lower() for entry in allow)):
            self._add(entry)

    def target(self, text: str, base: URL | None = None) -> URL:
        """Return the canonical URL to fetch, without fragment. `text` may be relative to `base`.

        Raises `AddressRefused`.
        """
        if len(text) > LONGEST_URL:
            raise AddressRefused(f"The URL is longer than {LONGEST_URL:,} characters.")
        if _UNSAFE.search(text):
            raise AddressRefused("The URL contains blanks, backslashes or control characters; percent-encode them.")
        if _SCHEME.match(text) and not _ABSOLUTE.match(text):
            raise AddressRefused("Only http:// and https:// URLs are fetched.")
        if base is None and not _ABSOLUTE.match(text):
            raise AddressRefused("The URL has to begin with http:// or https:// and a host.")
        _check_authority(text)
        url = self._joined(text, base)
        if base is not None and (base.scheme, url.scheme) == ("https", "http"):
            raise AddressRefused("The page redirects from https to http.")
        if not self._networks and not self._named(url.raw_host or ""):
            self._check_public_place(url)
        return url

    def admit(self, url: URL, addresses: Sequence[str]) -> frozenset[str]:
        """Return the addresses to connect to: all of the host's. Raises `AddressRefused` if any of them is refused."""
        host = url.raw_host or ""
        parsed = [parse_address(address) for address in addresses]
        known = [address for address in parsed if address is not None]
        if not known or len(known) < len(parsed):
            raise AddressRefused(f"{host} has an address that cannot be used.")
        if any(is_metadata(address) for address in known):
            raise AddressRefused(f"{host} is at a metadata service's address, which is never fetched.")
        if not self.allows(url, addresses):
            self._check_public_place(url)
            if not all(is_public(address) or self._in_allowed_network(address) for address in known):
                raise AddressRefused(f"{host} is not at a public address.")
        return frozenset(str(address) for address in known)

    def allows(self, url: URL, addresses: Iterable[str]) -> bool:
        """Tell if `allow` contains the host or all of these addresses."""
        found = [parse_address(address) for address in addresses]
        return self._named(url.raw_host or "") or all(
            address is not None and self._in_allowed_network(address) for address in found
        )

    def _add(self, entry: str) -> None:
        try:
            self._networks.append(ip_network(entry.strip("[]"), strict=False))
        except ValueError:
            name = entry.removeprefix("*.")
            if not _is_name(name):
                raise ConfigurationError(
                    f"RAG_FETCH_ALLOW: {entry!r} is neither a host name, an address nor a range such as 10.1.0.0/16.",
                    variable="RAG_FETCH_ALLOW",
                ) from None
            self._names.add(entry)

    def _joined(self, text: str, base: URL | None) -> URL:
        try:
            url = URL(text) if base is None else base.join(URL(text))
            authority = _authority(text)
            if authority or base is None:
                host = _canonical_host(url.raw_host or "", bracketed="[" in (authority or ""))
            else:
                host = base.raw_host or ""
            return url.with_user(None).with_host(host).with_fragment(None)
        except (ValueError, UnicodeError) as error:
            raise AddressRefused("The URL is malformed.") from error

    def _check_public_place(self, url: URL) -> None:
        host = url.raw_host or ""
        if parse_address(host) is None and nearness(host) < Nearness.PUBLIC:
            raise AddressRefused(f"{host} is a name of a local network; RAG_FETCH_ALLOW can allow it.")
        if url.port not in WEB_PORTS:
            ports = ", ".join(map(str, sorted(WEB_PORTS)))
            raise AddressRefused(
                f"Port {url.port} is not one of the web's ({ports}); RAG_FETCH_ALLOW can allow the host."
            )

    def _named(self, host: str) -> bool:
        parents = host.split(".")[1:]
        return host in self._names or any(f"*.{'.'.join(parents[n:])}" in self._names for n in range(len(parents)))

    def _in_allowed_network(self, address: IpAddress) -> bool:
        return any(address in network for network in self._networks)


def _authority(text: str) -> str | None:
    found = _AUTHORITY.match(text)
    return found[1] if found else None


def _check_authority(text: str) -> None:
    authority = _authority(text)
    if authority is None:
        return
    if "@" in authority:
        raise AddressRefused("The URL contains credentials, which are never sent. Remove them.")
    if "%" in authority:
        raise AddressRefused("The URL's host is percent-encoded or has a zone; write it plainly.")
    port = authority.rpartition("]")[2].partition(":")[2]
    if port and not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65_536):
        raise AddressRefused("The URL's port must be a number from 1 to 65535.")


def _canonical_host(host: str, *, bracketed: bool) -> str:
    address = parse_address(host)
    if address is not None and (address.version == 6) == bracketed:
        return str(address)
    name = host.removesuffix(".")
    if address is not None or bracketed or not _is_name(name):
        raise ValueError("neither a name nor an address in its usual form")
    return name


def _is_name(text: str) -> bool:
    return (
        len(text) <= _LONGEST_NAME and _NAME.fullmatch(text) is not None and not _NUMBER.fullmatch(text.split(".")[-1])
    )
