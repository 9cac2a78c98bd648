"""What each fault of each component does: the tests assert it, and docs/failures.md tells it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

NOTHING = "nothing is missing"


@dataclass(frozen=True)
class Cell:
    """What becomes of a request and a document while a component has a fault."""

    # What `/rag` goes on with.
    evidence: str
    # How the reasons in `degraded` begin, by their components. It has these components and no others but `settings`,
    # which are at hand for two seconds.
    degraded: Mapping[str, str]
    # Whether a new document is taken in meanwhile. One that is stored was refused by the queue, and is sent again.
    document: Literal["accepted", "refused", "stored"]
    # What an operator does.
    remedy: str
    # Whether only some of the requests are affected.
    sometimes: bool = False


def _flapping(cell: Cell) -> Cell:
    return replace(cell, remedy="Find out what breaks the connections", sometimes=True)


_LOCAL = "what the documents have"
_SEARXNG_IS_AWAY = Cell(
    _LOCAL, {"search": "SearXNG does not answer"}, "accepted", "Start SearXNG, or correct SEARXNG_HOST"
)
_SEARXNG_IS_LATE = replace(
    _SEARXNG_IS_AWAY, degraded={"search": "No answer within"}, remedy="See SearXNG's log; disable slow engines"
)

_WEB = "what the web has"
_POSTGRES_IS_AWAY = Cell(
    _WEB,
    {"knowledge_base": "The knowledge base is out of reach: PostgreSQL does not answer"},
    "refused",
    "Start PostgreSQL, or correct POSTGRES_URI",
)
_POSTGRES_IS_LATE = replace(
    _POSTGRES_IS_AWAY,
    degraded={"knowledge_base": "No answer within"},
    remedy="See PostgreSQL's log and what it is busy with: `SELECT * FROM pg_stat_activity`",
)

_QUEUE_IS_AWAY = Cell("everything", {}, "stored", "As for PostgreSQL")

_NEO4J_IS_AWAY = Cell(
    "what words and vectors find",
    {"graph": "Neo4j does not answer"},
    "accepted",
    "Start Neo4j, or correct NEO4J_URI",
)

CELLS: Mapping[str, Mapping[str, Cell]] = {
    "searxng": {
        "down": _SEARXNG_IS_AWAY,
        "silent": _SEARXNG_IS_LATE,
        "slow": _SEARXNG_IS_LATE,
        "error": replace(_SEARXNG_IS_AWAY, degraded={"search": "SearXNG answered 503"}, remedy="See SearXNG's log"),
        "garbage": replace(
            _SEARXNG_IS_AWAY,
            degraded={"search": "SearXNG did not answer JSON"},
            remedy="Correct SEARXNG_HOST: something else answers there",
        ),
        "cut": replace(_SEARXNG_IS_AWAY, remedy="See SearXNG's log, and that of the proxy before it"),
        "flapping": _flapping(_SEARXNG_IS_AWAY),
    },
    "postgres": {
        "down": _POSTGRES_IS_AWAY,
        "silent": _POSTGRES_IS_LATE,
        "slow": _POSTGRES_IS_LATE,
        "error": replace(
            _POSTGRES_IS_AWAY,
            degraded={
                "knowledge_base": "The knowledge base is out of reach: PostgreSQL is starting, stopping or recovering"
            },
            remedy="Wait; if it lasts, see PostgreSQL's log",
        ),
        "garbage": replace(
            _POSTGRES_IS_AWAY,
            degraded={"knowledge_base": "The knowledge base is out of reach: what answers takes no TLS"},
            remedy="Correct POSTGRES_URI: something else answers there",
        ),
        "cut": replace(_POSTGRES_IS_AWAY, remedy="See PostgreSQL's log, and that of the proxy before it"),
        "flapping": _flapping(_POSTGRES_IS_AWAY),
    },
    "queue": {
        fault: replace(_QUEUE_IS_AWAY, sometimes=fault == "flapping")
        for fault in ("down", "silent", "slow", "error", "garbage", "cut", "flapping")
    },
    "neo4j": {
        "down": _NEO4J_IS_AWAY,
        "silent": replace(_NEO4J_IS_AWAY, remedy="See Neo4j's log; restart it if it hangs"),
        "slow": replace(_NEO4J_IS_AWAY, remedy="See Neo4j's log and what it is busy with: `SHOW TRANSACTIONS`"),
        "error": replace(_NEO4J_IS_AWAY, remedy="See Neo4j's log, and whether its database is started"),
        "garbage": replace(_NEO4J_IS_AWAY, remedy="Correct NEO4J_URI: something else answers there"),
        "cut": replace(_NEO4J_IS_AWAY, remedy="See Neo4j's log, and that of the proxy before it"),
        "flapping": _flapping(_NEO4J_IS_AWAY),
    },
}
