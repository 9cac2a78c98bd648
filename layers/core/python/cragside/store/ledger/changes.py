"""A change of the graph as a plain value, and the conditions under which a ledger applies it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cragside.ports.embedder import Vectors
from cragside.store.ledger.entries import StoredPart

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class VectorChange:
    """Changed rows of one of LightRAG's vector storages.

    `updated` rows keep their vectors, as their texts stay; `written` rows have the rows of `vectors`, in their order.
    """

    removed: Sequence[str]
    updated: Mapping[str, Row]
    written: Mapping[str, Row]
    vectors: Vectors


@dataclass(frozen=True, slots=True)
class MentionChange:
    """Changed mentions of entities (`kind` is "entity") or of relations (pairs of name and passage)."""

    kind: str
    without_passages: Sequence[str]
    without_names: Sequence[str]
    added: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class GraphChange:
    """All writes of a merge. A value that is None is removed; the ends of an edge are in alphabetical order.

    `values` and `vectors` are by the namespaces of LightRAG's storages.
    """

    nodes: Mapping[str, Row | None] = field(default_factory=dict)
    edges: Mapping[tuple[str, str], Row | None] = field(default_factory=dict)
    vectors: Mapping[str, VectorChange] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, dict[str, Any] | None]] = field(default_factory=dict)
    mentions: Sequence[MentionChange] = ()


@dataclass(frozen=True, slots=True)
class WhileCurrent:
    """Applies while the part's version is current, and marks the part as enriched with the tally of its extraction."""

    part: StoredPart
    tally: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class OnceGone:
    """Applies while the part's version is gone, and removes what is left of the part."""

    part: StoredPart


@dataclass(frozen=True, slots=True)
class Always:
    """Applies whatever has become of the part."""


ChangeGuard = WhileCurrent | OnceGone | Always
