"""Names of models with the suffix that asks for evidence, such as `qwen2.5:7b+rag`. Ollama never sees the suffix."""

import json

from starlette.types import Message, Scope, Send

from cragside.entrypoints.proxy.messages import Header, parsed, parsed_if_bounded, value_of
from cragside.entrypoints.proxy.routes import LISTS, ONE_MODEL

SUFFIX = "+rag"  # Ollama's own names have no plus
_FIELDS = ("model", "name")
_MOST_LISTED = 8 * 1024 * 1024


def without_suffix(body: bytes) -> bytes | None:
    """The body with the model's name as Ollama knows it, None if the name has no suffix or the body too many values."""
    # .NET writes a plus as \u002B.
    if b"+rag" not in body and b"002brag" not in body.lower():
        return None
    request = parsed_if_bounded(body)
    suffixed = [] if request is None else [name for name in _FIELDS if _is_suffixed(request.get(name))]
    if request is None or not suffixed:
        return None
    return json.dumps({**request, **{name: request[name].removesuffix(SUFFIX) for name in suffixed}}).encode()


def _is_suffixed(name: object) -> bool:
    return isinstance(name, str) and name.endswith(SUFFIX) and name != SUFFIX


def unsuffixed_path(scope: Scope) -> Scope:
    """The scope with the path of the model that Ollama knows, for `/v1/models/NAME+rag`. Others stay unchanged."""
    path: str = scope["path"]
    if not (path.startswith(ONE_MODEL) and _is_suffixed(path[len(ONE_MODEL) :])):
        return scope
    raw: bytes = scope.get("raw_path") or path.encode()
    for ending in (b"+rag", b"%2Brag", b"%2brag"):
        raw = raw.removesuffix(ending)
    return {**scope, "path": path.removesuffix(SUFFIX), "raw_path": raw}


def is_list(scope: Scope) -> bool:
    """Tell if a request asks for the list of models."""
    return scope["method"] == "GET" and scope["path"] in LISTS


class SuffixedList:
    """Replaces `send`: adds each model's name with the suffix to a list of models."""

    def __init__(self, send: Send, path: str) -> None:
        self._send = send
        self._field, self._names = LISTS[path]
        self._start: Message = {}
        self._body = bytearray()
        self._passes = False
        self.begun = False  # whether the client has got anything

    async def __call__(self, message: Message) -> None:
        """ASGI's `send`."""
        if message["type"] == "http.response.start":
            self._start = message
            self._passes = message["status"] != 200 or value_of(message["headers"], b"content-encoding") is not None
            return
        self._body += message.get("body", b"")
        more = message.get("more_body", False)
        if more and not self._passes and len(self._body) <= _MOST_LISTED:
            return
        body = bytes(self._body) if self._passes or more else self._added(bytes(self._body))
        if not self.begun:
            self.begun = True
            await self._send({**self._start, "headers": self._headers(len(body) - len(self._body))})
        self._passes = True
        self._body.clear()
        await self._send({"type": "http.response.body", "body": body, "more_body": more})

    def _headers(self, grown: int) -> list[Header]:
        return [
            (name, b"%d" % (int(value) + grown) if grown and name.lower() == b"content-length" else value)
            for name, value in self._start["headers"]
        ]

    def _added(self, body: bytes) -> bytes:
        listed = parsed(body)
        models = None if listed is None else listed.get(self._field)
        if listed is None or not isinstance(models, list):
            return body
        added = [
            model | {name: f"{model[name]}{SUFFIX}" for name in self._names if isinstance(model.get(name), str)}
            for model in models
            if isinstance(model, dict)
        ]
        return json.dumps({**listed, self._field: [*models, *added]}).encode()
