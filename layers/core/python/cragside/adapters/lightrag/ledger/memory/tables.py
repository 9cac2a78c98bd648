"""What a store in memory holds. The ledger writes it, and LightRAG's storages read it."""

import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from cragside.adapters.lightrag.ledger.changes import Row
from cragside.adapters.lightrag.ledger.cutting import TEXTS
from cragside.adapters.lightrag.ledger.leases import Lease
from cragside.adapters.lightrag.ledger.memory.full_text import FullText
from cragside.adapters.lightrag.vector_index import VectorIndex
from cragside.domain.document import SourceText
from cragside.domain.indexing import Part
from cragside.domain.query import Query
from cragside.ports.embedder import Vectors

PASSAGES = "chunks"
Values = dict[str, dict[str, Any]]
# Has the place of a text of which nothing may be kept.
FORGOTTEN = SourceText("forgotten", "forgotten")


@dataclass
class Chunk:
    """A passage of a version."""

    id: str
    version: int
    part: int
    number: int
    page: int | None
    places: str
    tier2: Mapping[str, Any] | None = None


@dataclass
class Version:
    """A version of a document. `keys` are LightRAG's names of its parts."""

    number: int
    id: str
    digest: str
    source: SourceText
    created_at: str
    updated_at: str
    track: str
    enrich: bool
    state: Literal["current", "replaced", "gone"] = "current"
    parts: dict[int, Part] = field(default_factory=dict)
    keys: dict[int, str] = field(default_factory=dict)
    chunks: dict[str, Chunk] = field(default_factory=dict)


class VectorRow(NamedTuple):
    """A row of a vector storage; a later row has a larger number."""

    number: int
    row: Row
    vector: Vectors


class MemoryTables:
    """The tables of one store."""

    # Those that a backend keeps, by their folders: LightRAG's storages are told nothing but the folder.
    opened: ClassVar[WeakValueDictionary[str, "MemoryTables"]] = WeakValueDictionary()

    def __init__(self) -> None:
        self.versions: dict[int, Version] = {}
        self.origins: dict[str, str] = {}
        self.chunks: dict[str, Chunk] = {}
        self.values: defaultdict[str, Values] = defaultdict(dict)
        self.rows: defaultdict[str, dict[str, VectorRow]] = defaultdict(dict)
        self.indexes: dict[str, VectorIndex] = {}
        self.words = FullText()
        self.nodes: dict[str, Row] = {}
        self.edges: dict[tuple[str, str], Row] = {}
        self.links: defaultdict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
        self.mentions: defaultdict[str, dict[tuple[str, str], None]] = defaultdict(dict)
        # By the model and the hash of the text.
        self.kept: dict[tuple[str, bytes], tuple[str, Vectors]] = {}
        self.queries: dict[str, Query] = {}
        self.model: str | None = None
        self.untidy = False
        self.leases: dict[str, tuple[Lease, float]] = {}
        self.generation = uuid.uuid4().hex
        self.changes = 0
        self._number = 0

    def next_number(self) -> int:
        """A number that is larger than those before."""
        self._number += 1
        return self._number

    def reserve(self, number: int) -> None:
        """Have the next number be larger than this one."""
        self._number = max(self._number, number)

    def write_values(self, namespace: str, values: Mapping[str, dict[str, Any]]) -> None:
        """Write values with the time of their creation and change."""
        now, known = int(time.time()), self.values[namespace]
        for key, value in values.items():
            created = {} if key in known else {"create_time": now}
            extracted: Row = {"llm_cache_list": []} if namespace.endswith(TEXTS) else {}
            known[key] = {**extracted, **deepcopy(value), **created, "update_time": now, "_id": key}

    def write_vectors(
        self, namespace: str, rows: Mapping[str, Row], vectors: Vectors, words: Callable[[str], str]
    ) -> None:
        """Write rows with their vectors. `words` gives what full-text search sees of a passage."""
        paired = list(zip(rows.items(), vectors, strict=True))
        self.erase_vectors(namespace, rows)
        for (key, row), vector in paired:
            number = self.next_number()
            self.rows[namespace][key] = VectorRow(number, dict(row), vector.astype(np.float32))
            index = self.indexes.setdefault(namespace, VectorIndex(len(vector)))
            index.add([number], self.rows[namespace][key].vector[None, :])
            if namespace == PASSAGES:
                self.words.add(number, words(row.get("content", "")))

    def erase_vectors(self, namespace: str, ids: Iterable[str]) -> None:
        """Remove rows; missing ones are no error."""
        for found in (self.rows[namespace].pop(key) for key in list(ids) if key in self.rows[namespace]):
            self.indexes[namespace].remove([found.number])
            if namespace == PASSAGES:
                self.words.remove(found.number)

    def put_edge(self, ends: tuple[str, str], row: Row) -> None:
        """Write an edge whose ends are in alphabetical order."""
        self.edges[ends] = row
        self.links[ends[0]][ends[1]] = self.links[ends[1]][ends[0]] = ends

    def drop_edge(self, ends: tuple[str, str]) -> None:
        """Remove an edge; a missing one is no error."""
        self.edges.pop(ends, None)
        self.links[ends[0]].pop(ends[1], None)
        self.links[ends[1]].pop(ends[0], None)
