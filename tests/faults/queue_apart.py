"""`cragside`, with the queue behind an address of its own.

A service reaches its store and its queue in PostgreSQL by the same connections. Here the queue has others, so that it
can fail alone.
"""

import os
import sys

from cragside.bootstrap import Container
from cragside.databases.postgres.address import PostgresAddress
from cragside.databases.postgres.database import PostgresDatabase
from cragside.entrypoints.cli import serve, worker
from cragside.entrypoints.cli.app import app
from cragside.entrypoints.cli.session import Session
from cragside.settings import Settings
from cragside.store.queues.postgres import postgres_queue

VARIABLE = "TEST_QUEUE_URI"
# Otherwise whoever sends a document would wait 30 seconds for a queue that is silent.
PATIENCE_SECONDS = 3.0
PROGRAM = (sys.executable, "-c", "from tests.faults.queue_apart import main; main()")


def main() -> None:
    """Run `cragside`. The worker of a service has the same queue."""
    _, _, _, *arguments = worker.command(60.0, 0)
    vars(serve)["command"] = lambda *_: [*PROGRAM, *arguments]
    app(obj=Session(build=_built))


def _built(settings: Settings) -> Container:
    address = PostgresAddress.parse(os.environ[VARIABLE])
    database = PostgresDatabase(address, most=5, statement_seconds=PATIENCE_SECONDS)
    # A task that was taken for an answer that came too late waits for its lease to end.
    return Container(settings, queue=postgres_queue(database, lease_seconds=20.0))
