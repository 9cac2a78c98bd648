"""Connections only to addresses that were checked before."""

import socket
from collections.abc import Set as AbstractSet

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from typing_extensions import override


class PinnedResolver(AbstractResolver):
    """Resolves every name to the same addresses."""

    def __init__(self, addresses: AbstractSet[str]) -> None:
        self._addresses = addresses

    @override
    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in sorted(self._addresses)
        ]

    @override
    async def close(self) -> None:
        pass


def pinned_connector(addresses: AbstractSet[str]) -> aiohttp.TCPConnector:
    """A connector for one request, which connects to these addresses only.

    The certificate is still checked against the name in the URL. The sockets are checked too, because aiohttp does not
    use the resolver for a URL with an address.
    """

    def open_socket(target: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, _, address = target
        if address[0] not in addresses:
            raise OSError(f"{address[0]} is not one of the addresses that were checked")
        return socket.socket(family, kind, protocol)

    return aiohttp.TCPConnector(
        resolver=PinnedResolver(addresses), use_dns_cache=False, force_close=True, socket_factory=open_socket
    )
