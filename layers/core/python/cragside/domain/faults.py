"""Words for messages: numbers of things, and the faults of components for doctor, health, readiness and the log."""

import re
from dataclasses import dataclass
from typing import Self

from cragside.domain.errors import CragsideError


def counted(number: int, noun: str) -> str:
    """Return the number and the noun, in the plural unless the number is 1: `counted(2, "page")` is "2 pages"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


_PLACE = "Check the disk of RAG_HOME, or the database of POSTGRES_URI."
# What a component is called, and what to do if its error does not say.
_COMPONENTS = {
    "store": ("The store", _PLACE),
    "queue": ("The queue", _PLACE),
    "postgres": ("PostgreSQL", "Start it, or correct POSTGRES_URI."),
    "neo4j": ("Neo4j", "Start it, or correct NEO4J_URI."),
    "qdrant": ("Qdrant", "Start it, or correct QDRANT_URL."),
    "redis": ("Redis", "Start it, or correct REDIS_URI."),
    "ollama": ("Ollama", "Start it with `ollama serve`, or correct OLLAMA_BASE_URL."),
    "model_host": ("The model host", "Start it, or correct RAG_MODEL_HOST."),
    "reranker": ("The rerank endpoint", "Start it and see its log, or correct RAG_RERANK_URL and RAG_RERANK_MODEL."),
    "searxng": ("SearXNG", "Start it, or correct SEARXNG_HOST. Its settings.yml needs `json` under search.formats."),
    "configuration": ("The configuration", "Correct the settings."),
}
# Routes and errors name components by what they are for.
_SAME = {"graph": "neo4j", "vectors": "qdrant", "values": "redis", "search": "searxng", "embedder": "ollama"}
_SAME |= {"knowledge_base": "store"}
_ELSEWHERE = ("ollama", "embedder", "configuration")
_UNKNOWN = "See the log."
_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


@dataclass(frozen=True, slots=True)
class Fault:
    """A component that cannot be used, the cause, and the remedy. Cause and remedy are sentences."""

    component: str
    cause: str
    remedy: str

    @classmethod
    def of(cls, component: str, error: Exception, message: str) -> Self:
        """Read an error's `message`: its first sentence is the cause, the others are the remedy."""
        cause, *rest = map(_ended, _SENTENCES.split(message.strip(), maxsplit=1))
        own = error.details.get("component", "") if isinstance(error, CragsideError) else ""
        # A store may fail because of the model that it embeds with.
        return cls(component, cause, *rest or [_remedy(own if own in _ELSEWHERE else component)])

    @classmethod
    def late(cls, component: str, seconds: float) -> Self:
        """Describe a component that did not answer in time."""
        return cls(component, f"{_name(component)} did not answer within {seconds:g} s.", _remedy(component))

    @classmethod
    def unexpected(cls, component: str) -> Self:
        """Describe a failure of an unexpected kind."""
        return cls(component, f"{_name(component)} failed; the log has the details.", _remedy(component))

    def __str__(self) -> str:
        return f"{self.cause} {self.remedy}"


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?", "]")) else f"{sentence}."


def _name(component: str) -> str:
    return _COMPONENTS.get(_SAME.get(component, component), (f"The component {component}", ""))[0]


def _remedy(component: str) -> str:
    return _COMPONENTS.get(_SAME.get(component, component), ("", _UNKNOWN))[1]
