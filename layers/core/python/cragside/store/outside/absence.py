"""Answer without a database that is away, and say what is left out."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from cragside.domain.outcome import leave_out
from cragside.store.errors import LedgerError
from cragside.store.postgres.store import PostgresStore

logger = logging.getLogger("cragside")


@contextmanager
def left_out(component: str, what: str, store: PostgresStore, role: str) -> Iterator[None]:
    """Go on after the block when the database of a role fails or takes too long in it.

    The answer then tells that the `component` was left out, and the log that `what` is missing.
    """
    try:
        yield
    except (LedgerError, TimeoutError) as error:
        reason = error.reason if isinstance(error, LedgerError) else store.journal.target(role).late
        logger.warning("Workspace %s is searched without its %s: %s", store.workspace, what, reason)
        leave_out(component, f"{reason}. Passages were found without entities and relations.")
