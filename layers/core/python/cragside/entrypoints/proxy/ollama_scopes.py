"""The scope of each of Ollama's routes. Unlisted routes may change models, now or in a later version of Ollama."""

import re

from cragside.domain.tokens import TokenScope

_INFERENCE = frozenset(
    {
        "/api/chat",
        "/api/generate",
        "/api/embed",
        "/api/embeddings",
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/embeddings",
        "/v1/responses",
        "/v1/messages",
    }
)
_READ = frozenset({"/", "/api/tags", "/api/ps", "/api/version", "/v1/models"})
# Paths that may be counted by their names.
KNOWN = _INFERENCE | _READ | {"/api/show", "/api/pull", "/api/push", "/api/create", "/api/copy", "/api/delete"}
_MODEL = re.compile(r"/v1/models/(?!\.{1,2}$)[^/]+")


def scopes_of(method: str, path: str) -> tuple[TokenScope, ...]:
    """The scopes for a route of Ollama; each of them suffices. `path` is decoded, as Ollama matches it.

    Only exact paths count as inference or reading. Paths that Ollama might normalise or redirect (`//api/delete`,
    `/api/chat/`) need `models`.
    """
    if method == "POST" and path in _INFERENCE:
        return ("chat",)
    if method in ("GET", "HEAD") and (path in _READ or _MODEL.fullmatch(path)):
        return ("chat", "models")
    if method == "POST" and path == "/api/show":
        return ("chat", "models")
    return ("models",)
