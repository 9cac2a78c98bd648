"""The command line for real, and services for it to ask."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from cragside.bootstrap import Container
from cragside.entrypoints.cli.app import app
from cragside.entrypoints.cli.session import Session
from cragside.settings import load_settings


class RealCommands:
    """Runs commands with the real container; keywords are further variables of the environment."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def __call__(self, *arguments: str, **environment: str) -> Any:
        session = Session(environment={"RAG_HOME": str(self.home), **environment}, folder=self.home.parent)
        return CliRunner().invoke(app, list(arguments), obj=session)

    def json(self, *arguments: str, **environment: str) -> Any:
        """The document that a command prints, which has to succeed."""
        result = self(*arguments, "--json", **environment)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    def container(self, **environment: str) -> Container:
        """Another process's, as it were."""
        return Container(load_settings({"RAG_HOME": str(self.home), **environment}))


@contextmanager
def answering(status: int, body: str) -> Iterator[str]:
    """A service that answers everything so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def do_DELETE(self) -> None:
            self._answer()

        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def printed(result: Any, code: int = 0) -> str:
    """Return the standard output of a command that ended with `code`."""
    assert result.exit_code == code, result.output
    return result.stdout


def errors_of(result: Any, code: int = 0) -> str:
    """Return the standard error of a command that ended with `code`."""
    assert result.exit_code == code, result.output
    return result.stderr


def refused(result: Any, code: int = 2) -> str:
    """Return the standard error of a command that ended with `code` and printed nothing else."""
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    return result.stderr
