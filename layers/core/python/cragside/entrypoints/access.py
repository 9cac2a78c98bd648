"""What a request may do: its grant and its workspace. Without tokens, a check of `Host` prevents DNS rebinding."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from cragside.application.allowance import Allowance
from cragside.domain.addresses import Nearness, nearness
from cragside.domain.errors import Forbidden, Unauthorized
from cragside.domain.names import workspace_name
from cragside.domain.tokens import ALL_SCOPES, NO_LIMITS, Limits, TokenScope, listed

RawHeaders = Iterable[tuple[bytes, bytes]]
# The second is LightRAG's name for it.
WORKSPACE_HEADERS = (b"x-rag-workspace", b"lightrag-workspace")
# The id and name of whoever needs no token.
ANONYMOUS = "anonymous"


@dataclass(frozen=True, slots=True)
class Pass:
    """What one token allows. `id` and `name` are for people and logs. `workspaces` None means all."""

    id: str = ANONYMOUS
    name: str = ANONYMOUS
    scopes: frozenset[TokenScope] = ALL_SCOPES
    workspaces: tuple[str, ...] | None = None
    limits: Limits = NO_LIMITS
    expires: datetime | None = None

    def opens(self, workspace: str) -> bool:
        """Whether the token opens the workspace."""
        return self.workspaces is None or workspace in self.workspaces


@dataclass(frozen=True, slots=True)
class Grant:
    """What the tokens of a request allow. Each token's scopes apply only to its own workspaces.

    `headers` are the names of the headers with our tokens. They are not forwarded to Ollama.
    """

    passes: tuple[Pass, ...] = (Pass(),)
    headers: tuple[bytes, ...] = ()

    @property
    def workspaces(self) -> tuple[str, ...] | None:
        """The workspaces that the request may use; None means all."""
        if any(each.workspaces is None for each in self.passes):
            return None
        return tuple(dict.fromkeys(name for each in self.passes for name in each.workspaces or ()))

    def allows(self, *scopes: TokenScope) -> bool:
        """Whether a token has one of these scopes."""
        return any(not each.scopes.isdisjoint(scopes) for each in self.passes)

    def narrowed(self, *scopes: TokenScope) -> "Grant":
        """The grant of the tokens with one of these scopes. Raises `Forbidden` if there is none."""
        passes = tuple(each for each in self.passes if not each.scopes.isdisjoint(scopes))
        if not passes:
            raise Forbidden(
                f"The token does not have the scope {listed(scopes)}. Use one that has it, or make one: "
                f"cragside token new NAME --scope {scopes[0]}.",
                scope=scopes[0],
            )
        return self if len(passes) == len(self.passes) else Grant(passes, self.headers)

    def bearer(self, workspace: str | None, *scopes: TokenScope) -> Pass:
        """The token to which a request is attributed: one with one of the scopes that opens the workspace.

        Of several such tokens it is the one with the widest limits. Without any it is the first token.
        """
        scoped = [each for each in self.passes if not scopes or not each.scopes.isdisjoint(scopes)]
        opening = [each for each in scoped if workspace is None or each.opens(workspace)]
        return max(opening, key=lambda each: each.limits.width, default=self.passes[0])

    def allowance(self, workspace: str) -> Allowance:
        """How much may be stored in a workspace with the token that opens it."""
        bearer = self.bearer(workspace)
        return Allowance(bearer.id, bearer.limits, bearer.workspaces)

    def choose(self, named: str | None, default: str) -> str:
        """The named workspace, else the only granted one, else the default.

        Raises `Unauthorized` for a workspace that is not granted, whether it exists or not.
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
    """The token in a header, or None if the header has none."""
    if name == b"x-api-key":
        return value.strip()
    if name == b"authorization":
        scheme, _, given = value.strip().partition(b" ")
        return given.strip() if scheme.lower() == b"bearer" else None
    return None


def workspace_of(grant: Grant, headers: RawHeaders, named: object, default: str) -> str:
    """The workspace of a request: `named` in a field, else `X-RAG-Workspace`, else `LIGHTRAG-WORKSPACE`.

    Without a name it is the only granted workspace, else the default. Raises `ValidationError` for an invalid name, and
    `Unauthorized` for a workspace that is not granted, whether it exists or not.
    """
    given = _named_by_header(headers) if named is None else named
    return grant.choose(None if given is None else workspace_name(given), default)


def _named_by_header(headers: RawHeaders) -> str | None:
    """The workspace in the headers. Blank headers do not count."""
    values: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in WORKSPACE_HEADERS:
            values.setdefault(name, value)
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
    hosts = [_named(value.decode("latin-1").strip().lower()) for name, value in headers if name == b"host"]
    return all(map(fits, hosts)) and len(hosts) < 2


def _named(host: str) -> str:
    return _without_port(host).rstrip(".")


def _without_port(host: str) -> str:
    if host.startswith("["):
        name, bracket, _ = host[1:].partition("]")
        return name if bracket else host
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host
