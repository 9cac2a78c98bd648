"""A scripted model host on loopback: it answers each route in Ollama's forms, and notes what it was asked.

`hang` in a question makes it speak until the client leaves. Tools get called, a wanted form of JSON gets JSON, and the
model `missing` is not there.
"""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.hosts import forms

PIECES = ("The lamp ", "burns ", "colza oil [1].")
ANSWER = "".join(PIECES)
MODEL = "m"
_NAMES = {"name": MODEL, "model": MODEL, "modified_at": "2026-01-01T00:00:00Z", "size": 1, "digest": "0" * 64}
_CARD = {
    "details": {"family": "llama", "parameter_size": "1B", "quantization_level": "Q4_0", "format": "gguf"},
    "model_info": {"general.architecture": "llama", "llama.context_length": 32_768},
    "capabilities": ["completion", "tools"],
}
_LISTS: dict[str, dict[str, Any]] = {
    "/api/version": {"version": "0.17.4"},
    "/api/tags": {"models": [{**_NAMES, "details": _CARD["details"]}]},
    "/api/ps": {"models": [{**_NAMES, "context_length": 32_768}]},
    "/v1/models": {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 1, "owned_by": "library"}]},
}


class Upstream:
    """Serves while its context is open. `asked` has each prompt's path and body, `left` how often a client left."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.left = threading.Semaphore(0)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"upstream": self}))

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream: Upstream

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._send(200, {})

    def do_GET(self) -> None:
        self._send(200, _LISTS.get(self.path, {}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/api/show":
            self._send(200, _CARD)
            return
        self.upstream.asked.append((self.path, body))
        if body["model"] == "missing":
            self._send(404, forms.missing(self.path))
        elif not forms.streams(self.path, body):
            self._send(200, forms.whole(self.path, body, _said(body)))
        else:
            self._stream(body)

    def _send(self, status: int, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data if self.command != "HEAD" else b"")

    def _stream(self, body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", forms.media_type(self.path))
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for piece in forms.streamed(self.path, body, _said(body), endless=_is_endless(body)):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")
        except ConnectionError:
            self.close_connection = True
            self.upstream.left.release()


def _is_endless(body: dict[str, Any]) -> bool:
    return re.search(r"\bhang\b", json.dumps(body)) is not None  # a host's own tools may speak of changes


def _said(body: dict[str, Any]) -> tuple[str, ...]:
    form = body.get("format") or body.get("response_format") or (body.get("text") or {}).get("format", {})
    wanted = form if isinstance(form, str) else form.get("type")
    return PIECES if wanted in (None, "text") else ('{"fuel": ', '"colza oil"}')
