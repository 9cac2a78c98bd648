"""Table of the effects of each fault, as docs/failures.md shows it. The tests assert all but the remedies."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

FAULTS = ("down", "silent", "slow", "error", "garbage", "cut", "flapping")
# What a server that flaps is now and then.
_NOW_AND_THEN = ("down", "silent", "cut")
# What the document has, and the page in the web.
DOCUMENT, WEB = "Lord Armstrong", "newspapers"
# What a prompt has by what `/rag` goes on with. The embedded grader keeps the document.
EVIDENCE: Mapping[str, str] = {
    "everything": DOCUMENT,
    "the documents alone": DOCUMENT,
    "words and vectors": DOCUMENT,
    "the embedded grader": DOCUMENT,
    "words": DOCUMENT,
    "the web": WEB,
}


@dataclass(frozen=True)
class Cell:
    """Effects on a request and a document while a component has a fault."""

    # What `/rag` goes on with, of `EVIDENCE`.
    evidence: str
    # How the reasons in `degraded` begin, by their components. It has these components and no others.
    degraded: Mapping[str, str]
    # Whether a new document is taken in meanwhile. One that is stored was refused by the queue, and is sent again.
    document: Literal["accepted", "refused", "stored"]
    # What an operator does. It is for the page alone.
    remedy: str
    # Whether only some of the requests are affected.
    sometimes: bool = False


def _cells(
    evidence: str,
    document: Literal["accepted", "refused", "stored"],
    component: str,
    said: Mapping[str, str],
    done: Mapping[str, str],
) -> dict[str, Cell]:
    """The cells of a component. `said` are the reasons in `degraded` by fault; `down`'s is that of the others."""
    cells = {}
    for fault in FAULTS:
        degraded = {component: said.get(fault, said["down"])} if component else {}
        cells[fault] = Cell(evidence, degraded, document, done[fault], sometimes=fault == "flapping")
    return cells


def _done(start: str, address: str, busy: str, broken: str) -> dict[str, str]:
    """Return the remedies by fault. `address` is the setting with the address."""
    return {
        "down": f"{start}, or correct `{address}`",
        "silent": f"{busy}; restart it if it hangs",
        "slow": busy,
        "error": broken,
        "garbage": f"Correct `{address}`: something else answers there",
        "cut": f"{broken}, and that of the proxy before it",
        "flapping": "Find out what ends the connections: a proxy, the network, or restarts",
    }


_LATE, _NO_VECTOR = "No answer within", "No vector of the question within"
_POSTGRES = "The knowledge base is out of reach: "
_OLLAMA_SAYS = {
    "down": "Ollama does not answer",
    "silent": _LATE,
    "slow": _LATE,
    "error": "Ollama answered 503",
    "garbage": "the answer is not Ollama's",
}
_EMBEDDER_SAYS = {**_OLLAMA_SAYS, "silent": _NO_VECTOR, "slow": _NO_VECTOR}
_FOR_POSTGRES = _done("Start PostgreSQL", "POSTGRES_URI", "See `pg_stat_activity`", "See PostgreSQL's log")
_FOR_OLLAMA = _done("Start Ollama", "OLLAMA_BASE_URL", "See `ollama ps`", "See Ollama's log")

# By the names of the sections of the page.
CELLS: Mapping[str, Mapping[str, Cell]] = {
    "SearXNG": _cells(
        "the documents alone",
        "accepted",
        "search",
        {
            "down": "SearXNG does not answer",
            "silent": _LATE,
            "slow": _LATE,
            "error": "SearXNG answered 503",
            "garbage": "SearXNG did not answer JSON",
        },
        _done("Start SearXNG", "SEARXNG_HOST", "Disable slow engines in `settings.yml`", "See SearXNG's log"),
    ),
    "PostgreSQL": _cells(
        "the web",
        "refused",
        "knowledge_base",
        {
            "down": f"{_POSTGRES}PostgreSQL does not answer",
            "silent": _LATE,
            "slow": _LATE,
            "error": f"{_POSTGRES}PostgreSQL is starting, stopping or recovering",
            "garbage": f"{_POSTGRES}what answers takes no TLS",
        },
        _FOR_POSTGRES,
    ),
    "The queue": _cells("everything", "stored", "", {}, _FOR_POSTGRES),
    "Neo4j": _cells(
        "words and vectors",
        "accepted",
        "graph",
        {
            "down": "Neo4j does not answer",
            "error": "Neo4j said Neo.TransientError.General.DatabaseUnavailable",
            "garbage": "what answers at NEO4J_URI is no Neo4j",
        },
        _done("Start Neo4j", "NEO4J_URI", "See `SHOW TRANSACTIONS`", "See Neo4j's log"),
    ),
    "Ollama's chat model": _cells("the embedded grader", "accepted", "grader", _OLLAMA_SAYS, _FOR_OLLAMA),
    "Ollama's embedding model": _cells("words", "accepted", "embedder", _EMBEDDER_SAYS, _FOR_OLLAMA),
}


def passing(component: str, name: str) -> tuple[str, ...]:
    """Return the beginnings of the reasons that `degraded` may have for `name` while a component flaps."""
    return tuple(CELLS[component][fault].degraded[name] for fault in _NOW_AND_THEN)


_DOCUMENTS = {
    "accepted": "accepted",
    "refused": "`service_unavailable` or `timeout_error`: send it again",
    "stored": "stored, and `service_unavailable`: send it again",
}


def table(component: str) -> str:
    """The table of a component, as it is on the page."""
    rows = ["| Fault | `/rag` goes on with | `degraded` says | A new document | What to do |", "|---|---|---|---|---|"]
    for fault, cell in CELLS[component].items():
        said = "; ".join(f"`{name}`: {reason} …" for name, reason in cell.degraded.items()) or "nothing"
        sometimes = ", or all is well" if cell.sometimes and cell.degraded else ""
        told = (f"**{fault}**", cell.evidence, said + sometimes, _DOCUMENTS[cell.document], cell.remedy)
        rows.append(f"| {' | '.join(told)} |")
    return "\n".join(rows) + "\n"
