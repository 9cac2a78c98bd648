"""Public and special addresses, by IANA's special-purpose registries and the lists of clouds."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

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
    """The address, or None if it is not canonical: no zones, no octal, hexadecimal or shortened IPv4."""
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

    This includes IPv6 addresses that stand for the service's IPv4 address in a tunnel or a translation.
    """
    return any(each in network for each in (address, *_carried(address)) for network in _NEVER)


def _carried(address: IpAddress) -> Iterator[IPv4Address]:
    """The IPv4 addresses that packets to an IPv6 address may reach."""
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
