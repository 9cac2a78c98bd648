"""Decides what a request may do: the known tokens, its grant and its workspace."""

import hashlib
import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from cragside.application.allowance import Allowance
from cragside.domain.addresses import Nearness, nearness
from cragside.domain.errors import Forbidden, ServiceUnavailable, Unauthorized, ValidationError
from cragside.domain.names import workspace_name
from cragside.domain.tokens import (
    ALL_SCOPES,
    NO_LIMITS,
    TOKEN_PREFIX,
    USUAL_SCOPES,
    IssuedToken,
    Limits,
    TokenScope,
    listed,
)
from cragside.ports.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from cragside.bootstrap import Container

RawHeaders = Iterable[tuple[bytes, bytes]]
# The second is LightRAG's name for it.
WORKSPACE_HEADERS = (b"x-rag-workspace", b"lightrag-workspace")
# The id and name of whoever needs no token.
ANONYMOUS = "anonymous"


@dataclass(frozen=True, slots=True)
class Pass:
    """Says what one token allows. `id` and `name` are for people and logs. `workspaces` None means all."""

    id: str = ANONYMOUS
    name: str = ANONYMOUS
    scopes: frozenset[TokenScope] = ALL_SCOPES
    workspaces: tuple[str, ...] | None = None
    limits: Limits = NO_LIMITS
    expires: datetime | None = None

    def opens(self, workspace: str) -> bool:
        """Tell if the token opens the workspace."""
        return self.workspaces is None or workspace in self.workspaces


@dataclass(frozen=True, slots=True)
class Grant:
    """Says what the tokens of a request allow. Each token's scopes apply only to its own workspaces.

    `headers` are the names of the headers with our tokens. They are not forwarded to Ollama.
    """

    passes: tuple[Pass, ...] = (Pass(),)
    headers: tuple[bytes, ...] = ()

    @property
    def workspaces(self) -> tuple[str, ...] | None:
        """The workspaces that the request may use; None means all."""
        if None in [each.workspaces for each in self.passes]:
            return None
        return tuple(dict.fromkeys(name for each in self.passes for name in each.workspaces or ()))

    def allows(self, *scopes: TokenScope) -> bool:
        """Tell if a token has one of these scopes."""
        return any(not each.scopes.isdisjoint(scopes) for each in self.passes)

    def narrowed(self, *scopes: TokenScope) -> "Grant":
        """Return the grant of the tokens with one of these scopes. Raises `Forbidden` if there is none."""
        passes = [each for each in self.passes if not each.scopes.isdisjoint(scopes)]
        if not passes:
            raise Forbidden(
                f"The token does not have the scope {listed(scopes)}. Use one that has it, or make one: "
                f"cragside token new NAME --scope {scopes[0]}.",
                scope=scopes[0],
            )
        return self if len(passes) == len(self.passes) else Grant(tuple(passes), self.headers)

    def bearer(self, workspace: str | None, *scopes: TokenScope) -> Pass:
        """Return the token that a request counts for: one with one of the scopes that opens the workspace.

        Of several such tokens it is the one with the widest limits. If there is none, it is the first token.
        """
        scoped = [each for each in self.passes if not scopes or not each.scopes.isdisjoint(scopes)]
        opening = [each for each in scoped if workspace is None or each.opens(workspace)]
        return max(opening, key=lambda each: each.limits.width, default=self.passes[0])

    def allowance(self, workspace: str) -> Allowance:
        """Return how much may be stored in a workspace with the token that opens it."""
        bearer = self.bearer(workspace)
        return Allowance(bearer.id, bearer.limits, bearer.workspaces)

    def choose(self, named: str | None, default: str) -> str:
        """Return the named workspace, else the only one that the tokens open, else the default.

        Raises `Unauthorized` for a workspace that they do not open, whether it exists or not.
        """
        granted = self.workspaces
        if granted is None:
            return named or default
        if named is None:
            named = granted[0] if len(granted) == 1 else default
            if named not in granted:
                raise Unauthorized("The token opens several workspaces. Name one: workspace, or X-RAG-Workspace.")
        if named not in granted:
            raise Unauthorized("The token does not open this workspace.")
        return named


def credential(name: bytes, value: bytes) -> bytes | None:
    """Return the token in a header, or None if the header has none."""
    if name == b"x-api-key":
        return value.strip()
    if name == b"authorization":
        scheme, _, given = value.strip().partition(b" ")
        return given.strip() if scheme.lower() == b"bearer" else None
    return None


def workspace_of(grant: Grant, headers: RawHeaders, named: object, default: str) -> str:
    """Return the workspace of a request: `named` in a field, else `X-RAG-Workspace`, else `LIGHTRAG-WORKSPACE`.

    Without a name it is the only granted workspace, else the default. Raises `ValidationError` for an invalid name, and
    `Unauthorized` for a workspace that is not granted, whether it exists or not.
    """
    given = _named_by_header(headers) if named is None else named
    return grant.choose(None if given is None else workspace_name(given), default)


def _named_by_header(headers: RawHeaders) -> str | None:
    """Return the workspace in the headers. Blank headers do not count."""
    values: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in WORKSPACE_HEADERS:
            values.setdefault(name, value)
    if not values:
        return None
    names = (values[header].decode("latin-1").strip() for header in WORKSPACE_HEADERS if header in values)
    return next((name for name in names if name), None)


def local_host(headers: RawHeaders) -> bool:
    """Tell if `Host` names this machine: localhost, a name below it, or a loopback address.

    A client without `Host` is not a browser.
    """
    return _each_host(headers, lambda host: nearness(host) is Nearness.MACHINE)


def near_host(headers: RawHeaders, bound: str) -> bool:
    """Tell if Ollama on loopback answers to `Host`: this machine, its network, or the address `bound`.

    A web page whose name was rebound to 127.0.0.1 sends its own name, which is a public one. No page can rebind an
    address, the name of this machine, or a name below `.local` and `.internal`, which public servers do not know.
    """
    return _each_host(headers, lambda host: nearness(host) <= Nearness.NETWORK or host == bound.lower())


def _each_host(headers: RawHeaders, fits: Callable[[str], bool]) -> bool:
    hosts = [_host_in(value) for name, value in headers if name == b"host"]
    return len(hosts) < 2 and all(map(fits, hosts))


@lru_cache(maxsize=64)  # clients send the same few
def _host_in(header: bytes) -> str:
    return _without_port(header.decode("latin-1").strip().lower()).rstrip(".")


def _without_port(host: str) -> str:
    if host.startswith("["):
        name, bracket, _ = host[1:].partition("]")
        return name if bracket else host
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


class Keyring:
    """The known tokens: for everything (`tokens`), for some workspaces (`bound`), and those of the file (`issued`).

    If several kinds have the same token, the later kind applies. Without any token everything is open to everybody,
    unless `asked` requires a token, for example because all were revoked. `outage` is why some tokens are unknown now.
    """

    def __init__(
        self,
        tokens: Sequence[str],
        bound: Mapping[str, Sequence[str]],
        issued: Sequence[IssuedToken] = (),
        *,
        limits: Limits = NO_LIMITS,
        asked: bool = False,
        outage: ServiceUnavailable | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        passes: dict[bytes, Pass] = {}
        for token in filter(None, tokens):
            passes[_digest(token.encode())] = Pass("RAG_API_TOKEN", "RAG_API_TOKEN", limits=limits)
        for number, (known, workspaces) in enumerate(bound.items(), start=1):
            name = f"RAG_WORKSPACE_TOKENS[{number}]"
            passes[_digest(known.encode())] = Pass(name, name, USUAL_SCOPES, _names(workspaces), limits)
        passes |= {each.digest: _pass_of(each, limits) for each in issued}
        self._passes = list(passes.items())
        self._open = not (self._passes or asked or outage)
        self._anonymous = Grant((Pass(limits=limits),))
        self._outage = outage
        self._clock = clock

    @property
    def empty(self) -> bool:
        """Tell if requests need no token."""
        return self._open

    def grant(self, headers: RawHeaders) -> Grant | None:
        """Return what the tokens in the headers (lower-case names) allow, None for nothing.

        Reads `Authorization: Bearer` and `X-API-Key`. Each token is compared with all known tokens in constant time, so
        that the time reveals nothing. Raises `ServiceUnavailable` for an unknown token while some cannot be read.
        """
        if self._open:
            return self._anonymous
        brought = [(name, given) for name, value in headers if (given := credential(name, value)) is not None]
        now = self._clock.now()
        opened: dict[Pass, None] = {}
        ours: list[bytes] = []
        for name, given in brought:
            known = self._opened_by(_digest(given))
            opened |= {each: None for each in known if each.expires is None or each.expires > now}
            # An unknown token of our form may have been revoked. It is not forwarded either.
            if known or given.startswith(TOKEN_PREFIX.encode()):
                ours.append(name)
        if opened:
            return Grant(tuple(opened), tuple(ours))
        if brought and self._outage is not None:
            raise self._outage
        return None

    def _opened_by(self, digest: bytes) -> list[Pass]:
        matches = [hmac.compare_digest(known, digest) for known, _ in self._passes]
        return [each for (_, each), match in zip(self._passes, matches, strict=True) if match]


def _pass_of(token: IssuedToken, limits: Limits) -> Pass:
    workspaces = None if token.workspaces is None else _names(token.workspaces)
    return Pass(token.id, token.name, token.scopes, workspaces, token.limits.filled(limits), token.expires)


def _names(workspaces: Sequence[str]) -> tuple[str, ...]:
    """Return the names in their normal form. Invalid names are left out."""
    names = []
    for workspace in workspaces:
        with suppress(ValidationError):
            names.append(workspace_name(workspace))
    return tuple(names)


class Keys:
    """Provides the current keyring. Both layers of `cragside serve` share one, and use it once for each request."""

    def __init__(self, container: "Container") -> None:
        self._container = container
        settings = container.settings
        self._bound = settings.bound_tokens
        self._asked = settings.asks_for_token
        self._limits = Limits(settings.limit_workspaces, settings.limit_documents, settings.limit_bytes)
        # What the keyring was built from. The tokens of the file are compared by identity.
        self._built_from: tuple[object, ...] = ()
        self._issued: Sequence[IssuedToken] = ()
        self._keyring = Keyring((), {}, asked=True)

    @property
    def asked(self) -> bool:
        """Tell if requests need a token."""
        return self._asked

    def keyring(self) -> Keyring:
        """Return the tokens that are valid now. The keyring is built again only when they change."""
        tokens: tuple[str, ...] = ()
        issued: Sequence[IssuedToken] = ()
        outage: ServiceUnavailable | None = None
        try:
            tokens = self._container.api_tokens()
        except ServiceUnavailable as error:
            outage = error
        try:
            issued = self._container.issued_tokens()
        except ServiceUnavailable as error:
            outage = error
        # Each failure is a new error, so outages are compared by what they say.
        built_from = tokens, outage and (outage.component, outage.message)
        if built_from != self._built_from or issued is not self._issued:
            self._keyring = Keyring(
                tokens,
                self._bound,
                issued,
                limits=self._limits,
                asked=self._asked,
                outage=outage,
                clock=self._container.clock,
            )
            self._built_from, self._issued = built_from, issued
        return self._keyring


def _digest(token: bytes) -> bytes:
    """Return a token's hash. All hashes have one length, so that comparing them does not tell a token's length."""
    return hashlib.sha256(token).digest()
