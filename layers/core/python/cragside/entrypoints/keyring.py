"""The known tokens, and what they allow."""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from contextlib import suppress

from cragside.bootstrap import Container
from cragside.domain.errors import ServiceUnavailable, ValidationError
from cragside.domain.names import workspace_name
from cragside.domain.tokens import NO_LIMITS, TOKEN_PREFIX, USUAL_SCOPES, IssuedToken, Limits
from cragside.entrypoints.access import Grant, Pass, RawHeaders, credential
from cragside.ports.clock import SYSTEM_CLOCK, Clock


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
        """Whether requests need no token."""
        return self._open

    def grant(self, headers: RawHeaders) -> Grant | None:
        """What the tokens in the headers (lower-case names) allow, None for nothing.

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
    """The names in their normal form. Invalid names are left out."""
    names = []
    for workspace in workspaces:
        with suppress(ValidationError):
            names.append(workspace_name(workspace))
    return tuple(names)


class Keys:
    """Provides the current keyring. Both layers of `cragside serve` share one, and use it once for each request."""

    def __init__(self, container: Container) -> None:
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
        """Whether requests need a token."""
        return self._asked

    def keyring(self) -> Keyring:
        """The tokens that are valid now. The keyring is built again only when they change."""
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
    """A hash. All have one length, so that a comparison does not reveal the length of a known token."""
    return hashlib.sha256(token).digest()
