"""Who may come in: the token, and the guard against DNS rebinding where there is none."""

import hmac
import ipaddress
from collections.abc import Iterable
from functools import lru_cache

RawHeaders = Iterable[tuple[bytes, bytes]]


def authorised(headers: RawHeaders, token: str | None) -> bool:
    """Whether the headers (lower-case names) bring the token, as `Authorization: Bearer` or `X-API-Key`.

    True when no token is asked for. Compared in constant time.
    """
    if not token:
        return True
    expected = token.encode()
    brought = [given for name, value in headers if (given := credential(name, value)) is not None]
    return sum(hmac.compare_digest(given, expected) for given in brought) > 0


def credential(name: bytes, value: bytes) -> bytes | None:
    """The token that a header brings, or None when it is not a header that brings one."""
    if name == b"x-api-key":
        return value.strip()
    if name == b"authorization":
        scheme, _, given = value.strip().partition(b" ")
        return given.strip() if scheme.lower() == b"bearer" else None
    return None


def local_host(headers: RawHeaders, bound: str | None = None) -> bool:
    """Whether `Host` names this machine: localhost, a name below it, a loopback address, or `bound`.

    A web page whose name was rebound to 127.0.0.1 sends its own name there. What sends no `Host` is not a browser.
    """
    hosts = [value for name, value in headers if name == b"host"]
    return all(_is_local(host, bound) for host in hosts) and len(hosts) < 2


@lru_cache(maxsize=256)
def _is_local(host: bytes, bound: str | None) -> bool:
    name = _without_port(host.decode("latin-1").strip().lower()).rstrip(".")
    if name == "localhost" or name.endswith(".localhost") or (bound is not None and name == bound.lower()):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _without_port(host: str) -> str:
    if host.startswith("["):
        name, bracket, _ = host[1:].partition("]")
        return name if bracket else host
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host
