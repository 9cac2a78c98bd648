"""Decides which web pages may call which routes. Browsers send the origin of a page, and the page cannot change it.

Other programs send neither `Origin` nor `Sec-Fetch-Site`. Tokens decide what they may do.
"""

import re
from collections.abc import Iterable, Sequence

from cragside.domain.addresses import Origin, OriginPattern
from cragside.entrypoints.access import local_host

_Header = tuple[bytes, bytes]

# Headers of our answers that pages may read.
EXPOSED = ("X-Rag-Verdict", "X-Rag-Documents", "X-Rag-Memory", "X-Rag-Degraded", "X-Request-ID", "Retry-After")
FOREIGN_PAGE = "This web page may not call cragside. List its origin in RAG_ALLOW_ORIGINS where cragside is started."

# What Ollama accepts without OLLAMA_ORIGINS (envconfig.AllowedOrigins).
_OLLAMAS_HOSTS = frozenset({"localhost", "127.0.0.1", "0.0.0.0"})  # noqa: S104 (a page's host, not one to bind to)
_OLLAMAS_SCHEMES = frozenset({"app", "file", "tauri", "vscode-webview", "vscode-file"})
_EXPOSE = b"access-control-expose-headers"
_METHODS = b"GET, HEAD, POST, PUT, PATCH, DELETE"
_HEADER_NAMES = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~-]+(?:[ \t]*,[ \t]*[A-Za-z0-9!#$%&'*+.^_`|~-]+)*")
_PREFLIGHT_SECONDS = b"600"


class Origins:
    """Judges requests (header names in lower case) by the page that sent them. `allowed` is RAG_ALLOW_ORIGINS."""

    def __init__(self, allowed: Sequence[OriginPattern]) -> None:
        self._allowed = tuple(allowed)

    def may_call(self, headers: Iterable[_Header]) -> bool:
        """Tell if the request may use cragside's own routes.

        It may if no page sent it, or a page of the same origin, of an allowed origin, or of this machine if `Host`
        names this machine too.
        """
        sender = _Sender(headers)
        if not sender.origins:
            return sender.from_no_foreign_page
        origin = sender.origin
        return origin is not None and (
            self._lists(origin) or sender.same_origin or (sender.to_this_machine and local(origin))
        )

    def may_ask(self, headers: Iterable[_Header]) -> bool:
        """Tell if the request may have evidence and memory on Ollama's routes.

        It may if no page sent it, or a page that Ollama accepts by default, or a page of an allowed origin.
        """
        sender = _Sender(headers)
        if not sender.origins:
            return sender.from_no_foreign_page
        origin = sender.origin
        return origin is not None and (self._lists(origin) or _ollama_accepts(origin))

    def lists(self, headers: Iterable[_Header]) -> bool:
        """Tell if a page of an allowed origin sent the request."""
        origin = _Sender(headers).origin
        return origin is not None and self._lists(origin)

    def _lists(self, origin: Origin) -> bool:
        return any(pattern.allows(origin) for pattern in self._allowed)


class _Sender:
    """The page that sent a request, and the host that it is for."""

    def __init__(self, headers: Iterable[_Header]) -> None:
        self.origins: list[str] = []
        self._sites: list[str] = []
        self._hosts: list[_Header] = []
        for name, value in headers:
            if name == b"origin":
                self.origins.append(value.decode("latin-1").strip())
            elif name == b"sec-fetch-site":
                self._sites.append(value.decode("latin-1").strip().lower())
            elif name == b"host":
                self._hosts.append((name, value))

    @property
    def origin(self) -> Origin | None:
        """The origin. None for no origin, for several, and for an invalid one."""
        return Origin.parse(self.origins[0]) if len(self.origins) == 1 else None

    @property
    def to_this_machine(self) -> bool:
        """Tell if `Host` names this machine."""
        return bool(self._hosts) and local_host(self._hosts)

    @property
    def same_origin(self) -> bool:
        """Tell if the page comes from the server that it calls.

        A proxy in front may have ended TLS, so the page's scheme is taken for that of the server. `Sec-Fetch-Site`
        decides where it is sent.
        """
        origin = self.origin
        if origin is None or not origin.is_web or len(self._hosts) != 1 or not self._sites_among("same-origin", "none"):
            return False
        return origin == Origin.parse(f"{origin.scheme}://{self._hosts[0][1].decode('latin-1').strip().lower()}")

    @property
    def from_no_foreign_page(self) -> bool:
        """Tell if a request without `Origin` comes from no page, or from a page that is not foreign.

        `same-site` are pages on other ports of a host and on its sister domains. On this machine they are the user's
        own, elsewhere they may be anybody's.
        """
        if not self._sites:  # no browser sent it
            return True
        own = ("same-origin", "none")
        return self._sites_among(*own, "same-site") if self.to_this_machine else self._sites_among(*own)

    def _sites_among(self, *sites: str) -> bool:
        return all(site in sites for site in self._sites)


def local(origin: Origin) -> bool:
    """Tell if the page is from this machine, by the same rule as for `Host`."""
    return origin.is_web and local_host([(b"host", origin.host.encode())])


def _ollama_accepts(origin: Origin) -> bool:
    return origin.host in _OLLAMAS_HOSTS if origin.is_web else origin.scheme in _OLLAMAS_SCHEMES


def is_preflight(method: str, headers: Sequence[_Header]) -> bool:
    """Tell if a request is a preflight, by which a browser asks what a page may send. It has no body."""
    if method != "OPTIONS":
        return False
    names = {name for name, value in headers if name != b"content-length" or value.strip() != b"0"}
    return {b"origin", b"access-control-request-method"} <= names and not names & {
        b"content-length",
        b"transfer-encoding",
    }


def preflight_headers(headers: Sequence[_Header]) -> list[_Header]:
    """Return the answer to the preflight of an accepted page, which allows all that it asks for."""
    given = dict(headers)
    allowed = [(b"access-control-allow-origin", given[b"origin"].strip()), (b"access-control-allow-methods", _METHODS)]
    asked = given.get(b"access-control-request-headers", b"").strip()
    if _HEADER_NAMES.fullmatch(asked):
        allowed.append((b"access-control-allow-headers", asked))
    if given.get(b"access-control-request-private-network") == b"true":
        allowed.append((b"access-control-allow-private-network", b"true"))
    varies = b"Origin, Access-Control-Request-Method, Access-Control-Request-Headers"
    return [*allowed, (b"access-control-max-age", _PREFLIGHT_SECONDS), (b"vary", varies)]


def cors_headers(answer: Sequence[_Header], request: Sequence[_Header]) -> list[_Header]:
    """Return an answer's headers, with those that let the page behind the request read it. Existing ones stay."""
    origin = next((value.strip() for name, value in request if name == b"origin"), None)
    if origin is None:
        return list(answer)
    kept = [header for header in answer if header[0].lower() != _EXPOSE]
    exposed = [
        name.strip() for key, value in answer if key.lower() == _EXPOSE for name in value.decode("latin-1").split(",")
    ]
    missing = [name for name in EXPOSED if name.lower() not in {known.lower() for known in exposed}]
    kept.append((_EXPOSE, ", ".join(exposed + missing).encode("latin-1")))
    if not any(name.lower() == b"access-control-allow-origin" for name, _ in answer):
        kept += [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]
    return kept
