"""The scope that each of Ollama's routes needs. What is not named here may change models, now or in a later Ollama."""

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
_MODEL = re.compile(r"/v1/models/(?!\.{1,2}$)[^/]+")


def scopes_of(method: str, path: str) -> tuple[TokenScope, ...]:
    """The scopes any of which opens a route of Ollama's; `path` without percent-encoding, as Ollama matches it.

    Only exact paths are inference or reading: what Ollama might clean up or redirect (`//api/delete`, `/api/chat/`)
    needs `models`.
    """
    if method == "POST" and path in _INFERENCE:
        return ("chat",)
    if method in ("GET", "HEAD") and (path in _READ or _MODEL.fullmatch(path)):
        return ("chat", "models")
    if method == "POST" and path == "/api/show":
        return ("chat", "models")
    return ("models",)
