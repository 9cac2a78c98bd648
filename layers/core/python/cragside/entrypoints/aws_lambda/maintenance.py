"""What the index function does beside indexing, when an event asks for it: `{"sweep": true}` or `{"migrate": true}`."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from cragside.bootstrap import Container
from cragside.domain.errors import ConfigurationError
from cragside.entrypoints.aws_lambda.observability import logger

Answer = dict[str, Any]
Job = Callable[[Container, float], Coroutine[Any, Any, Answer]]


def job_of(event: Any) -> Job | None:
    """The job that an event asks for, None if it asks for none. A job gets the seconds that it may take."""
    asked = [name for name in _JOBS if isinstance(event, Mapping) and event.get(name) is True]
    return _JOBS[asked[0]] if asked else None


async def sweep(container: Container, seconds: float) -> Answer:
    """Queue work that the queue lacks, if it has no tasks. One that runs out of time is no failure: the next goes on.

    Raises `CragsideError` if the queue cannot be used.
    """
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            swept = await container.sweeper.sweep_if_idle()
    except TimeoutError:
        logger.warning("the sweep ran out of time")
        return {"swept": False, "reason": "time"}
    if swept is None:
        return {"swept": False, "reason": "busy"}
    logger.info("swept", extra={"workspaces": swept.workspaces, "tasks": swept.tasks})
    return {"swept": True, "workspaces": swept.workspaces, "tasks": swept.tasks}


async def migrate(container: Container, seconds: float) -> Answer:
    """Do what `cragside migrate` does: from inside a network that no other program of cragside is in.

    Raises `CragsideError` if the database cannot be used, or its role may not make tables.
    """
    from cragside.composition.databases import migrate as make_tables

    if container.database is None:
        raise ConfigurationError("POSTGRES_URI is not set. There is nothing to migrate.", variable="POSTGRES_URI")
    settings = container.settings
    embedder = await container.open_embedder(settings.embedding_model)
    made = await make_tables(container.database, embedder, age=settings.graph_storage == "PGGraphStorage")
    return {"migrated": True, "made": made}


_JOBS: dict[str, Job] = {"sweep": sweep, "migrate": migrate}
