"""An OpenTelemetry collector on loopback, for tests: it takes spans by OTLP over HTTP."""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    """Keeps what it gets. While it is `held`, it answers nobody."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self._answering = threading.Event()
        self._answering.set()
        self._got = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def hold(self) -> None:
        """Answer nobody until the end."""
        self._answering.clear()

    def wait_for(self, enough: Callable[[list[Span]], bool]) -> list[Span]:
        """The spans, once they are enough."""
        with self._got:
            assert self._got.wait_for(lambda: enough(self.spans()), 60), self.spans()
            return self.spans()

    def spans(self) -> list[Span]:
        """All spans so far."""
        return [
            span
            for request in self.requests()
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def requests(self) -> list[ExportTraceServiceRequest]:
        """All requests so far."""
        return [ExportTraceServiceRequest.FromString(body) for body in self.bodies]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._answering.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with collector._got:
                    collector.bodies.append(body)
                    collector.headers.append({**self.headers, "path": self.path})
                    collector._got.notify_all()
                collector._answering.wait()
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing."""

        return Handler


def told(span: Span) -> dict[str, Any]:
    """A span's attributes."""
    return {attribute.key: _value(attribute.value) for attribute in span.attributes}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind) if kind else None
