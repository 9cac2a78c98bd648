"""What a statement does, by its words."""

from functools import lru_cache

from cragside.ports.telemetry import StatementKind

_WRITES = frozenset({"INSERT", "UPDATE", "DELETE", "(INSERT", "(UPDATE", "(DELETE"})
_TRANSACTION = frozenset({"BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE"})
_DATA = frozenset({"SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "COPY"})


def only_reads(sql: str) -> bool:
    """Whether a statement writes nothing itself, so that it can be tried once more after its answer was lost."""
    words = set(sql.split())
    return "SELECT" in words and not words & _WRITES


@lru_cache(maxsize=256)
def kind_of(sql: str) -> StatementKind:
    """What a statement does. A function that it calls may do more."""
    first = next(iter(sql.split(maxsplit=1)), "").rstrip(";").upper()
    if first in _TRANSACTION:
        return "transaction"
    if first not in _DATA:
        return "other"
    return "read" if only_reads(sql) else "write"
