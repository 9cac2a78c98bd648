"""`cragside serve`: runs the HTTP service and the Ollama proxy."""

import asyncio
import gc
import logging
import threading
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cragside.composition.serving import announced
from cragside.domain.addresses import Nearness, nearness
from cragside.domain.errors import ConfigurationError
from cragside.entrypoints.cli.session import place_of, session_of
from cragside.entrypoints.cli.worker import arguments_for, command, run_forked
from cragside.entrypoints.log import address_of

if TYPE_CHECKING:
    from cragside.bootstrap import Container
    from cragside.entrypoints.worker_process import Run
    from cragside.settings import Settings

DEFAULT_PORT = 8642
# Seconds that an idle worker stays: starting one takes longer than most of its tasks.
_IDLE_SECONDS = 60.0
_NICE = 10
# Nobody waits for the look at the components at the start.
_PATIENCE_SECONDS = 10.0
_EXPOSED = (
    "is reachable from other machines and RAG_API_TOKEN is not set. Set it, or pass --allow-anonymous to serve "
    "requests without a token."
)
_log = logging.getLogger("cragside")


def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = DEFAULT_PORT,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that share the requests.")] = 1,
    allow_anonymous: Annotated[
        bool, typer.Option("--allow-anonymous", help="Listen beyond this machine without RAG_API_TOKEN.")
    ] = False,
    open_console: Annotated[bool, typer.Option("--open", help="Open the console in the browser.")] = False,
) -> None:
    """Run the HTTP service and the Ollama proxy.

    Ollama's and OpenAI's routes pass through to OLLAMA_BASE_URL, else to OLLAMA_HOST, else to http://127.0.0.1:11434.
    Point an Ollama client at this address instead of Ollama's: prompts that begin with /rag get evidence. All else
    passes through byte for byte.

    A separate process indexes accepted documents. It runs while there is work to do. Nothing is indexed into a baked
    store. With RAG_QUEUE_URL, the workers of that queue do the indexing.

    Ctrl-C and SIGTERM let requests under way end (5 seconds at most); the command then ends with 0.
    """
    session = session_of(context)
    settings = session.settings()
    from cragside.composition.process import raise_limit  # here, since all of this imports FastAPI and more
    from cragside.entrypoints.log import logged
    from cragside.entrypoints.metrics import counting_folder

    if not (settings.asks_for_token or allow_anonymous or nearness(host) is Nearness.MACHINE):
        raise ConfigurationError(f"{host} {_EXPOSED}")
    raise_limit()
    with logged(settings.log_level, settings.log_format), counting_folder() as metrics:
        announce = partial(_announce, settings.path_prefix or "", open_console)
        _serve(context, settings, announce, host=host, port=port, workers=workers, metrics=metrics)


def _announce(path_prefix: str, open_console: bool, address: str) -> None:
    """Print where the server and its console are, and open the console if that is asked for."""
    console = f"{address.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')}{path_prefix}/console/"
    typer.echo(f"cragside listens on {address}")
    typer.echo(f"Its console is at {console}")
    if open_console:
        # A browser for terminals holds up whoever opens it.
        threading.Thread(target=webbrowser.open, args=(console,), daemon=True).start()


def _serve(
    context: typer.Context,
    settings: "Settings",
    announce: "Callable[[str], None]",
    *,
    host: str,
    port: int,
    workers: int,
    metrics: str | None,
) -> None:
    from cragside.bootstrap import preload
    from cragside.entrypoints.metrics import FOLDER, database_counts
    from cragside.entrypoints.proxy import server
    from cragside.entrypoints.proxy.processes import Forker, Handover, supervise
    from cragside.entrypoints.worker_process import executing

    session, program = session_of(context), context.find_root().command.main
    listening = server.listen(host, port)
    _log.info(_about(settings))

    environment = {**session.given().values, **({FOLDER: metrics} if metrics else {})}

    def run(serving: "Callable[[Container], Awaitable[None]]", worker: "Run | None") -> None:
        async def work(container: "Container") -> None:
            await container.prepare()
            if container.spare_room is not None:
                container.spare_room.keep()
            # What is there now stays: looking through it again and again would only take time from requests.
            gc.freeze()
            if workers == 1:
                # Not a daemon: Python ends beneath those, and extension modules then crash.
                threading.Thread(target=_build_ahead, args=(settings,)).start()
            # One of them does this for all.
            async with (
                faults_logged(container) if worker else nullcontext(),
                _worker_kept(container, worker, metrics) if worker else nullcontext(),
            ):
                await serving(container)

        figures = database_counts() if metrics and settings.on_postgres else None
        session.run(settings, work, loop_factory=server.loop_factory(), members={"figures": figures})

    with announced(settings, server.address_of(listening, host)):
        if workers == 1:
            worker = executing(command(_IDLE_SECONDS, _NICE), environment)
            run(lambda container: server.serve(container, listening, host, announce=announce, metrics=metrics), worker)
            return
        preload(settings)
        _build_ahead(settings)

        def index(arguments: Sequence[str]) -> None:
            handover.close()
            run_forked(program, [*arguments_for(_IDLE_SECONDS, _NICE), *arguments], environment)

        handover = Handover(listening, workers, lambda: announce(server.address_of(listening, host)))
        with handover, Forker(index) as forker:

            def run_worker(number: int) -> None:
                channel = handover.channel(number)
                # One of them keeps the worker: what it does it does for all.
                run(
                    lambda container: server.serve_handed(container, channel, host, metrics=metrics),
                    forker.run if number == 0 else None,
                )

            supervise(workers, run_worker, partial(handover.attend, forker=forker))


def _build_ahead(settings: "Settings") -> None:
    """Build the OpenAPI document and the types of MCP before a request needs them: they take a second."""
    from cragside.entrypoints.http.mcp import load_protocol
    from cragside.entrypoints.http.openapi import openapi_document

    openapi_document(settings.path_prefix)
    load_protocol()


@asynccontextmanager
async def faults_logged(container: "Container") -> AsyncIterator[None]:
    """Log which configured components do not answer, while the block runs. The block does not wait for that."""
    from cragside.entrypoints.http.health import Readiness

    looking = asyncio.create_task(Readiness(container, patience=_PATIENCE_SECONDS).look())
    try:
        yield
    finally:
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking


def _about(settings: "Settings") -> str:
    """Say for the log what is configured."""
    models = f"Ollama: {address_of(settings.ollama_address) or 'not configured; the embedded models do the work'}"
    if settings.openai_address is not None:
        models = f"Model host: {address_of(settings.openai_address)}"
    web = address_of(settings.searxng_host) or "not configured"
    tokens = "asked for" if settings.asks_for_token else "none"
    return f"Store: {place_of(settings)}. {models}. Web search: {web}. Tokens: {tokens}."


@asynccontextmanager
async def _worker_kept(container: "Container", run: "Run", metrics: str | None) -> AsyncIterator[None]:
    """Keep a worker process, if this server has one. It starts at once if a crash may have left work."""
    if not container.keeps_worker():
        yield
        return
    from cragside.entrypoints.metrics import forget_figures, worker
    from cragside.entrypoints.worker_process import WorkerProcess, keeping_worker

    async def run_once(arguments: Sequence[str]) -> int:
        try:
            return await run(arguments)
        finally:
            if metrics:
                forget_figures(Path(metrics), worker())

    process = WorkerProcess(container.queue.stats, run_once, clock=container.clock)
    async with keeping_worker(process, at_once=bool(await container.workspaces.names())):
        yield
