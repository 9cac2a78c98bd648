"""cragside as a service that runs in the process of the tests."""

import asyncio
import threading
from pathlib import Path
from typing import Self

import uvicorn

from cragside.bootstrap import Container
from cragside.entrypoints.http.app import create_app
from cragside.settings import load_settings


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
