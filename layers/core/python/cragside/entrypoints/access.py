"""Who may come in: the tokens, and the guard against DNS rebinding where there are none."""

import hashlib
import hmac
import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cragside.domain.errors import Unauthorized
from cragside.domain.workspace_name import workspace_name

RawHeaders = Iterable[tuple[bytes, bytes]]
# The second is LightRAG's name for it.
WORKSPACE_HEADERS = (b"x-rag-workspace", b"lightrag-workspace")


@dataclass(frozen=True, slots=True)
class Grant:
    """The workspaces that a request may use; None is all of them."""

    workspaces: tuple[str, ...] | None = None

    def choose(self, named: str | None, default: str) -> str:
        """The workspace that is named, else the only one granted, else the default.

        Raises `Unauthorized` for one that is not granted, whether it exists or not.
        """
        if self.workspaces is None:
            return named or default
        if named is None:
            named = self.workspaces[0] if len(self.workspaces) == 1 else default
            if named not in self.workspaces:
                raise Unauthorized("The token opens several workspaces. Name one: workspace, or X-RAG-Workspace.")
        if named not in self.workspaces:
            raise Unauthorized("The token does not open this workspace.")
        return named


class Keyring:
    """The tokens that are known: one that opens every workspace, and others that open some. Without any, all is open.

    A token of both kinds opens some workspaces only.
    """

    def __init__(self, token: str | None, bound: Mapping[str, Sequence[str]]) -> None:
        self._grants: list[tuple[bytes, tuple[str, ...] | None]] = [
            (_digest(known.encode()), tuple(workspaces)) for known, workspaces in bound.items()
        ]
        if token and token not in bound:
            self._grants.append((_digest(token.encode()), None))

    @property
    def empty(self) -> bool:
        """Whether no token is asked for."""
        return not self._grants

    def grant(self, headers: RawHeaders) -> Grant | None:
        """What the headers (lower-case names) open, None for nothing.

        Takes `Authorization: Bearer` and `X-API-Key`. Each token that is brought is held against all that are known,
        in constant time, so that the time it takes tells of none.
        """
        if self.empty:
            return Grant()
        brought = [_digest(given) for name, value in headers if (given := credential(name, value)) is not None]
        opened = [workspaces for given in brought for workspaces in self._opened_by(given)]
        if not opened:
            return None
        if None in opened:
            return Grant()
        return Grant(tuple(dict.fromkeys(name for workspaces in opened for name in workspaces or ())))

    def knows(self, token: bytes) -> bool:
        """Whether it is one of the tokens."""
        return bool(self._opened_by(_digest(token)))

    def _opened_by(self, digest: bytes) -> list[tuple[str, ...] | None]:
        matches = [hmac.compare_digest(known, digest) for known, _ in self._grants]
        return [workspaces for (_, workspaces), match in zip(self._grants, matches, strict=True) if match]


def credential(name: bytes, value: bytes) -> bytes | None:
    """The token that a header brings, or None when it is not a header that brings one."""
    if name == b"x-api-key":
        return value.strip()
    if name == b"authorization":
        scheme, _, given = value.strip().partition(b" ")
        return given.strip() if scheme.lower() == b"bearer" else None
    return None


def workspace_of(grant: Grant, headers: RawHeaders, named: object, default: str) -> str:
    """The workspace of a request: `named` by a field of it, else by `X-RAG-Workspace`, else by `LIGHTRAG-WORKSPACE`.

    When none of them names one it is the only one granted, else the default. Raises `ValidationError` for a name that
    is none, and `Unauthorized` for a workspace that is not granted, whether it exists or not.
    """
    given = _named_by_header(headers) if named is None else named
    return grant.choose(None if given is None else workspace_name(given), default)


def _named_by_header(headers: RawHeaders) -> str | None:
    """A blank header names none."""
    values: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in WORKSPACE_HEADERS:
            values.setdefault(name, value)
    names = (values[header].decode("latin-1").strip() for header in WORKSPACE_HEADERS if header in values)
    return next((name for name in names if name), None)


def _digest(token: bytes) -> bytes:
    """Of one length for all tokens, so that a comparison does not tell how long the known one is."""
    return hashlib.sha256(token).digest()


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
