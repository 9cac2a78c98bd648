"""Hosts that functions can reach: the servers, a collector of traces, pages."""

from collections.abc import Iterator
from ipaddress import IPv4Network, ip_address
from urllib.parse import urlsplit

from infra.environments.knowledge import Writable
from infra.environments.model import Environment
from infra.environments.network import ImportedNetwork, NewNetwork
from infra.environments.telemetry import ENDPOINTS

_PRIVATE_NAMES = (".internal", ".local")
# Names of load balancers and endpoints, which lead to private addresses as well.
_OF_AWS = ".amazonaws.com"


def unreachable(environment: Environment) -> Iterator[str]:
    """Return the hosts that functions cannot reach, a line each."""
    network, knowledge = environment.network, environment.knowledge
    if isinstance(network, NewNetwork) and isinstance(knowledge, Writable) and knowledge.fetch_pages:
        yield (
            "knowledge.fetch_pages: the new network has no way out to pages: leave it out, or import a network that "
            "has one"
        )
    servers = environment.endpoints
    addresses = {f"servers.{name}": url for name, url in servers.urls.items()}
    addresses |= {f"settings: {name}": url for name in ENDPOINTS if (url := environment.settings.get(name))}
    for field, url in addresses.items():
        if reason := _refusal(urlsplit(url).hostname or "", network, servers.cidrs):
            yield f"{field}: {reason}"


def _refusal(host: str, network: NewNetwork | ImportedNetwork | None, cidrs: tuple[str, ...]) -> str | None:
    try:
        address = ip_address(host)
    except ValueError:
        address = None
    private = address.is_private if address else "." not in host or host.endswith(_PRIVATE_NAMES)
    if network is None:
        return "functions outside of a network cannot reach this private address: set network" if private else None
    if isinstance(network, ImportedNetwork):
        return None
    if address is None:
        if private or cidrs or host.endswith(_OF_AWS):
            return None
        return "the new network has no way out to this public name. If it is private, say in servers.cidrs where it is"
    if not private:
        return "the new network has no way out to this public address"
    ranges = cidrs or (network.cidr,)
    if not any(address in IPv4Network(each) for each in ranges):
        return f"functions may reach {', '.join(ranges)} alone: say in servers.cidrs where it is"
    return None
