"""What failures of PostgreSQL mean for whoever runs cragside."""

import ssl

import asyncpg

from cragside.adapters.postgres.connections import AllBusy
from cragside.adapters.renewable import Unreadable

# What a statement may raise. `TimeoutError` and refused connections are `OSError`.
FAILURES = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
_MEANINGS = (
    (
        (asyncpg.UndefinedTableError, asyncpg.UndefinedFunctionError, asyncpg.InvalidSchemaNameError),
        "its tables are missing",
        "has no tables yet. Run `cragside migrate`",
    ),
    (
        asyncpg.InsufficientPrivilegeError,
        "the role may not do that",
        "may not be used by the role in POSTGRES_URI. Grant it the rights in docs/postgresql.md",
    ),
    (
        asyncpg.LockNotAvailableError,
        "another client locks what is needed",
        "waits for another client of PostgreSQL, which locks what is needed. Try again; pg_stat_activity shows it",
    ),
    (
        asyncpg.ReadOnlySQLTransactionError,
        "PostgreSQL is read-only",
        "cannot be written: PostgreSQL is read-only. Use the primary server, or see why this one became read-only",
    ),
    (asyncpg.DiskFullError, "its disk is full", "has a full disk. Free some of it on PostgreSQL's machine"),
    (
        (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError),
        "a pooler gives statements to other connections",
        "is behind a pooler that keeps no prepared statements: add statement_cache_size=0 to POSTGRES_URI",
    ),
    (
        asyncpg.InvalidAuthorizationSpecificationError,
        "the user or the password is wrong",
        "refuses the user or the password in POSTGRES_URI. Correct them, or let the user in with pg_hba.conf",
    ),
    (
        Unreadable,
        "its secret cannot be read",
        "is out of reach: what POSTGRES_URI_SECRET names cannot be read. The log has the reason",
    ),
    (
        asyncpg.InvalidCatalogNameError,
        "there is no such database",
        "has no database: the one that POSTGRES_URI names is not there. Create it, or correct POSTGRES_URI",
    ),
    (
        AllBusy,
        "all connections are in use",
        "is busy: all connections to PostgreSQL are in use. Try again, or raise RAG_POSTGRES_CONNECTIONS",
    ),
    (
        ssl.SSLError,
        "TLS failed",
        "is out of reach: TLS failed. Check PostgreSQL's certificate, and sslmode and sslrootcert in POSTGRES_URI",
    ),
    (
        asyncpg.CannotConnectNowError,
        "PostgreSQL is starting, stopping or recovering",
        "is out of reach: PostgreSQL is starting, stopping or recovering. Wait, or see its log",
    ),
    (
        asyncpg.TooManyConnectionsError,
        "it has too many connections",
        "has too many connections to PostgreSQL. Lower RAG_POSTGRES_CONNECTIONS, or raise its max_connections",
    ),
)
# asyncpg has no class of its own for this.
_NO_TLS = "rejected SSL upgrade"
_WITHOUT_TLS = (
    "PostgreSQL takes no TLS, or something else answers",
    "is out of reach: what answers takes no TLS, which sslmode in POSTGRES_URI asks for, or is no PostgreSQL. Set up "
    "its certificate, choose another sslmode, or correct the address",
)


def meaning_of(error: BaseException) -> tuple[str, str]:
    """The reason, and the end of the sentence 'The store …' with cause and remedy.

    Neither holds what was asked: that may be somebody's text.
    """
    if type(error) is ConnectionError and _NO_TLS in str(error):
        return _WITHOUT_TLS
    for kinds, reason, unusable in _MEANINGS:
        if isinstance(error, kinds):
            return reason, unusable
    if isinstance(error, asyncpg.PostgresError) and not isinstance(error, asyncpg.PostgresConnectionError):
        return f"PostgreSQL said {type(error).__name__}", "failed in PostgreSQL. See its log"
    remedy = "Start it, or correct POSTGRES_URI"
    return "PostgreSQL does not answer", f"is out of reach: PostgreSQL does not answer. {remedy}"
