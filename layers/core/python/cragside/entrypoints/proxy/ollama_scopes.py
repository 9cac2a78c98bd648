"""Ollama's routes, and the scope of each. Unlisted routes may change models, now or in a later version of Ollama."""

import re

from starlette.types import Scope

from cragside.domain.tokens import TokenScope

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


def posts_to(routes: frozenset[str], scope: Scope) -> bool:
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
