"""Tells which paths are cragside's own. All others are Ollama's, whose routes and scopes are here."""

import posixpath
import re
from functools import lru_cache
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from cragside.domain.tokens import TokenScope
from cragside.entrypoints.http.request_access import OPEN_ROUTES, RULES
from cragside.entrypoints.proxy.messages import send_whole

CHAT, GENERATE = "/api/chat", "/api/generate"
OPENAI_CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
MESSAGES = "/v1/messages"
# These carry prompts.
ROUTES = frozenset({CHAT, GENERATE, OPENAI_CHAT, COMPLETIONS, RESPONSES, MESSAGES})
# These have a `num_ctx`, and evidence can be told in their answers' last line.
OLLAMA_ROUTES = frozenset({CHAT, GENERATE})
_EMBEDDINGS = frozenset({"/api/embed", "/api/embeddings", "/v1/embeddings"})
_INFERENCE = ROUTES | _EMBEDDINGS
_SHOW = "/api/show"
# Requests that name a model and carry no prompt.
NAMING_ROUTES = _EMBEDDINGS | {_SHOW}
# The lists of models: where an answer has them, and the fields of a model with its name.
LISTS = {"/api/tags": ("models", ("name", "model")), "/v1/models": ("data", ("id",))}
ONE_MODEL = "/v1/models/"
_READ = LISTS.keys() | {"/", "/api/ps", "/api/version"}
# Paths that may be counted by their names.
KNOWN = ROUTES | NAMING_ROUTES | _READ | {"/api/pull", "/api/push", "/api/create", "/api/copy", "/api/delete"}
_MODEL = re.compile(rf"{ONE_MODEL}(?!\.{{1,2}}$)[^/]+")


def _prefix(route: str) -> str:
    segments = route.partition(" ")[2].split("/")
    return "/".join(segments[:3] if segments[1] == "v1" else segments[:2])


# These paths, and all below them.
OWN_PREFIXES = (*OPEN_ROUTES, *sorted({_prefix(route) for route in RULES}))


@lru_cache(maxsize=256)
def is_own(path: str) -> bool:
    """Tell if a path is one of cragside's routes, or resembles one, as `//V1/documents/` does.

    Our application answers 404 for a path that only resembles a route, whether or not Ollama runs.
    """
    return _is_below(path) or _is_below(_normalised(path))


def _is_below(path: str) -> bool:
    return path.startswith(OWN_PREFIXES) and any(
        path == prefix or path.startswith(f"{prefix}/") for prefix in OWN_PREFIXES
    )


def _normalised(path: str) -> str:
    """The path decoded once more, in lower case, without empty segments and dots."""
    decoded = unquote(path).replace("\\", "/").lower()
    return posixpath.normpath("/" + decoded.lstrip("/"))


def is_post_to(routes: frozenset[str], scope: Scope) -> bool:
    """Tell if a request posts to one of these routes."""
    return scope["method"] == "POST" and scope["path"] in routes


def scopes_of(method: str, path: str) -> tuple[TokenScope, ...]:
    """The scopes for a route of Ollama; each of them suffices. `path` is decoded, as Ollama matches it.

    Only exact paths count as inference or reading. Paths that Ollama might normalise or redirect (`//api/delete`,
    `/api/chat/`) need `models`.
    """
    if method == "POST" and path in _INFERENCE:
        return ("chat",)
    reads = method in ("GET", "HEAD") and (path in _READ or _MODEL.fullmatch(path))
    return ("chat", "models") if reads or (method == "POST" and path == _SHOW) else ("models",)


def below(prefix: str | None, app: ASGIApp) -> ASGIApp:
    """Serve `app` at `prefix` as well as at `/`: some reverse proxies remove the prefix, others leave it."""
    if prefix is None:
        return app
    start, raw_start = f"{prefix}/", f"{prefix}/".encode()

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == prefix and scope["method"] in ("GET", "HEAD"):
            # Relative links of our pages need the slash.
            await send_whole(send, 308, [(b"location", raw_start)])
            return
        if scope["type"] == "http" and scope["path"].startswith(start):
            raw: bytes = scope.get("raw_path") or scope["path"].encode()
            if raw.startswith(raw_start):  # escaped letters in the prefix are not the prefix
                cut = len(raw_start) - 1
                # In place: the log and the connection's own refusals use the same path.
                scope["path"], scope["raw_path"] = scope["path"][cut:], raw[cut:]
        await app(scope, receive, send)

    return served
