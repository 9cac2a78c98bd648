"""Describes what a workspace holds: its sizes, and the entities of its graph."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Indexed:
    """The outcome of one source: `indexed`, `updated`, `unchanged` or `failed` with a reason."""

    name: str
    status: str
    reason: str = ""
    passages: int = 0


@dataclass(frozen=True, slots=True)
class KnowledgeStatus:
    """Sizes of a workspace and the embedding model that built it.

    `lightrag_workspace` is the name by which LightRAG's own server finds it, if that can read it. `size` is that of
    its store in bytes; None where several workspaces share one. `waiting_changes` counts what other databases do not
    have yet. Two statuses that differ in these alone are equal: a copy has another name.
    """

    workspace: str
    embedding_model: str
    documents: int
    passages: int
    entities: int
    relations: int
    by_status: dict[str, int] = field(default_factory=dict)
    lightrag_workspace: str = field(default="", compare=False)
    size: int | None = field(default=None, compare=False)
    waiting_changes: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Entity:
    """A node. Times are ISO 8601 in UTC, None when unknown; `mentions` counts the passages that name it."""

    name: str
    type: str
    description: str
    mentions: int = 0
    first_seen: str | None = None
    last_seen: str | None = None


@dataclass(frozen=True, slots=True)
class Connection:
    """An edge as seen from one entity."""

    entity: str
    relationship: str
    direction: Literal["incoming", "outgoing"]
    description: str = ""


@dataclass(frozen=True, slots=True)
class EntityView:
    """An entity with its connections, strongest first, and the ids and labels of documents that mention it."""

    entity: Entity
    connections: tuple[Connection, ...]
    documents: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Relationship:
    """An edge between two entities."""

    source: str
    target: str
    type: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Entities and the relationships among them. `capped`: there were more than the limit."""

    entities: tuple[Entity, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    capped: bool = False
