"""Says how near a host is, by what it is called: all that trusts, asks or refuses local hosts decides by it."""

import socket
from enum import IntEnum
from ipaddress import IPv4Address, IPv6Address, ip_address

from cragside.domain.addresses import IpAddress, is_public

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
    """Tell how near a host is. It has no port and no brackets."""
    name = host.lower().rstrip(".")
    address = host_address(name)
    if address is None:
        return _nearness_of_name(name)
    if is_public(address):
        return Nearness.PUBLIC
    if _written_out(name) is None:
        return Nearness.CUSTOMARY
    return Nearness.MACHINE if address.is_loopback else Nearness.NETWORK


def host_address(host: str) -> IpAddress | None:
    """The address that a host is, also in the shortened forms that operating systems read, such as 127.1."""
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
