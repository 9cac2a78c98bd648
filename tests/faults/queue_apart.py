"""`python -m tests.faults.queue_apart`: the command line, with the queue behind an address of its own.

A service reaches its store and its queue in PostgreSQL by the same connections. Here the queue has others, so that it
can fail alone.
"""

import os
from functools import cached_property

from cragside.composition.stores import Stores
from cragside.entrypoints.cli import serve, worker
from cragside.ports.index_queue import IndexQueue

VARIABLE = "TEST_QUEUE_URI"
PROGRAM = ("-c", "from tests.faults.queue_apart import main; main()")


def _queue(stores: Stores) -> IndexQueue:
    from cragside.adapters.postgres.address import PostgresAddress
    from cragside.adapters.postgres.database import PostgresDatabase
    from cragside.adapters.postgres.queue import PostgresQueue

    database = PostgresDatabase(PostgresAddress.parse(os.environ[VARIABLE]), most=5)
    stores._connected(database, database.close)
    queue = PostgresQueue(database)
    return stores._connected(queue, queue.close)


def main() -> None:
    """Run `cragside` and its worker."""
    from cragside.entrypoints.cli.main import main as run

    member = cached_property(_queue)
    member.__set_name__(Stores, "queue")
    Stores.queue = member  # type: ignore[assignment]
    usual = worker.command
    serve.command = lambda *given: [usual(*given)[0], *PROGRAM, *usual(*given)[3:]]  # type: ignore[attr-defined]
    run()
