"""Failures of PostgreSQL as those of the ledger."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cragside.databases.postgres.connections import FAILURES, meaning_of
from cragside.store.ledger.failures import LedgerError


@asynccontextmanager
async def translating() -> AsyncIterator[None]:
    """Raise failures of PostgreSQL as the ledger's own exception."""
    try:
        yield
    except FAILURES as error:
        raise LedgerError(*meaning_of(error)) from error
