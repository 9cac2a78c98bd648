"""The command line for real, and services for it to ask."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import uvicorn
from typer.testing import CliRunner

from cragside.bootstrap import Container
from cragside.entrypoints.cli.app import app
from cragside.entrypoints.cli.session import Session
from cragside.entrypoints.http.app import create_app
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


class Served:
    """cragside's routes and a worker in a thread, on loopback; keywords are further variables of the environment."""

    def __init__(self, home: Path, **environment: str) -> None:
        self._environment = {"RAG_HOME": str(home), "RAG_API_TOKEN": "secret", **environment}
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self.address = ""

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(60)

    async def _serve(self) -> None:
        container = Container(load_settings(self._environment))
        config = uvicorn.Config(create_app(container), port=0, lifespan="off", log_level="critical")
        self._server = uvicorn.Server(config)
        worker = container.worker()
        serving, working = asyncio.create_task(self._server.serve()), asyncio.create_task(worker.run())
        while not self._server.started:
            await asyncio.sleep(0.01)
        self.address = f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"
        self._ready.set()
        await serving
        worker.stop()
        await working
        await container.close()


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
