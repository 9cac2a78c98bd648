"""Addresses of hosts and origins: which are public, how near they are, and which origins are allowed."""

import ipaddress
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Self

IpAddress = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Python's `is_global` differs between 3.11 and 3.13, and includes some of these.
_NOT_PUBLIC_4 = (
    "0.0.0.0/8",  # this network
    "10.0.0.0/8",  # private
    "100.64.0.0/10",  # carrier-grade NAT, and Alibaba's metadata service
    "127.0.0.0/8",  # loopback
    "169.254.0.0/16",  # link-local, and most metadata services
    "172.16.0.0/12",  # private
    "192.0.0.0/24",  # protocol assignments, and Oracle's metadata service
    "192.0.2.0/24",  # documentation
    "192.31.196.0/24",  # AS112
    "192.52.193.0/24",  # automatic multicast tunnelling
    "192.88.99.0/24",  # 6to4 relays
    "192.168.0.0/16",  # private
    "192.175.48.0/24",  # AS112
    "198.18.0.0/15",  # benchmarking
    "198.51.100.0/24",  # documentation
    "203.0.113.0/24",  # documentation
    "224.0.0.0/4",  # multicast
    "240.0.0.0/4",  # reserved, and broadcast
    "168.63.129.16/32",  # Azure's host, on a public address
)
# Only 2000::/3 is assigned for routing. It excludes loopback, mapped and compatible IPv4, NAT64 (64:ff9b::/96 and
# 64:ff9b:1::/48), discard-only, unique local, link-local, site-local, multicast and unassigned addresses.
_ROUTED_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = (
    "2001::/23",  # protocol assignments: Teredo, benchmarking, ORCHID
    "2001:db8::/32",  # documentation
    "2002::/16",  # 6to4, which carries any IPv4 address
    "2620:4f:8000::/48",  # AS112
    "3ffe::/16",  # the former 6bone
    "3fff::/20",  # documentation
)
_METADATA = (
    "169.254.0.0/16",  # AWS, Google, Azure, DigitalOcean, OpenStack, Tencent, Scaleway
    "fe80::/10",
    "100.100.100.200/32",  # Alibaba
    "168.63.129.16/32",  # Azure
    "192.0.0.192/32",  # Oracle
    "fd00:ec2::/32",  # AWS
    "fd20:ce::254/128",  # Google
    "fd00:42::42/128",  # Scaleway
    "fd00:c1::a9fe:a9fe/128",  # Oracle
)

_SPECIAL = tuple(ip_network(network) for network in (*_NOT_PUBLIC_4, *_NOT_PUBLIC_6))
_NEVER = tuple(ip_network(network) for network in _METADATA)
# Interface identifiers of ISATAP. The IPv4 address that a tunnel on this machine would send to follows them.
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)
# IPv6 addresses whose last 32 bits are an IPv4 address: compatible, mapped, translated, and NAT64's.
_IPV4_LAST = tuple(IPv6Network(f"{prefix}/96") for prefix in ("::", "::ffff:0:0", "::ffff:0:0:0", "64:ff9b::"))
# NAT64 of a site: the length of its prefix says where the IPv4 address begins (RFC 6052).
_NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")


def parse_address(text: str) -> IpAddress | None:
    """Return the address, or None if it is not canonical: no zones, no octal, hexadecimal or shortened IPv4."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return None if isinstance(address, IPv6Address) and address.scope_id else address


def is_public(address: IpAddress) -> bool:
    """Tell if the address is public."""
    if isinstance(address, IPv6Address):
        if address not in _ROUTED_6 or (int(address) >> 32) & 0xFFFF_FFFF in _ISATAP:
            return False
    elif not address.is_global:
        return False
    return not any(address in network for network in _SPECIAL)


def is_metadata(address: IpAddress) -> bool:
    """Tell if the address may be a cloud's metadata service, which gives credentials to any client.

    An IPv6 address counts too if it stands for the service's IPv4 address in a tunnel or a translation.
    """
    return any(each in network for each in (address, *_carried(address)) for network in _NEVER)


def _carried(address: IpAddress) -> Iterator[IPv4Address]:
    """Yield the IPv4 addresses that packets to an IPv6 address may reach, through a tunnel or a translation."""
    if isinstance(address, IPv4Address):
        return
    octets, number = address.packed, int(address)
    if any(address in network for network in _IPV4_LAST) or (number >> 32) & 0xFFFF_FFFF in _ISATAP:
        yield IPv4Address(octets[12:])
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if address in _NAT64_LOCAL:
        yield IPv4Address(octets[12:])
        without_reserved = octets[:8] + octets[9:]
        for start in (6, 7, 8):
            yield IPv4Address(without_reserved[start : start + 4])


# Multicast DNS, Docker Desktop (`host.docker.internal`) and clouds give these names out, and no public server does.
_RESERVED = (".local", ".internal")
_CUSTOMARY = (
    "localdomain", "local", "internal", "intranet", "private", "corp", "home", "lan", "home.arpa", "svc", "onion",
    "metadata.tencentyun.com", "metadata.packet.net", "metadata.platformequinix.com",
)  # fmt: skip


class Nearness(IntEnum):
    """The distance of a host. Nearer ones come first."""

    MACHINE = 0
    """This machine: localhost, a name below it, a loopback address."""
    NETWORK = 1
    """Its network, by a name that no web page can be rebound to: an address that is not public, `.local`, its own."""
    CUSTOMARY = 2
    """A local network as a rule: a name without a dot, `.lan`, an address as only operating systems read it."""
    PUBLIC = 3
    """Any other host."""


def nearness(host: str) -> Nearness:
    """Tell how near a host is. The host is given without a port and without brackets."""
    name = host.lower().rstrip(".")
    known = _nearness_of_address(name)
    return _nearness_of_name(name) if known is None else known


@lru_cache(maxsize=64)  # each request asks it of its host, and reading an address costs as much as passing a chunk on
def _nearness_of_address(name: str) -> Nearness | None:
    """Tell how near an address is. None for a name, whose nearness may change with the name of this machine."""
    address = host_address(name)
    if address is None:
        return None
    if is_public(address):
        return Nearness.PUBLIC
    if _written_out(name) is None:
        return Nearness.CUSTOMARY
    return Nearness.MACHINE if address.is_loopback else Nearness.NETWORK


def host_address(host: str) -> IpAddress | None:
    """Return the address that a host is written as, also in a short form that operating systems read, such as 127.1."""
    address = _written_out(host)
    if address is None:
        try:
            return IPv4Address(socket.inet_aton(host))
        except (OSError, UnicodeError):
            return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _written_out(host: str) -> IpAddress | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _nearness_of_name(name: str) -> Nearness:
    if f".{name}".endswith(".localhost"):
        return Nearness.MACHINE
    if name.endswith(_RESERVED) or name == socket.gethostname().lower():
        return Nearness.NETWORK
    customary = "." not in name or any(f".{name}".endswith(f".{end}") for end in _CUSTOMARY)
    return Nearness.CUSTOMARY if customary else Nearness.PUBLIC


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
        """Tell if a web server sent the page."""
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
        """Tell if pages of the origin are allowed."""
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
    """Return the host in canonical form; None for an invalid IPv6 address."""
    if not written.startswith("["):
        return written
    try:
        return f"[{ipaddress.IPv6Address(written[1:-1])}]"
    except ValueError:
        return None
