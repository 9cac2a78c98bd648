"""The graph of one workspace, to read."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


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


class KnowledgeGraph(ABC):
    """Reads entities and what connects them. Failures raise `ServiceUnavailable("knowledge_base", ...)`."""

    @abstractmethod
    async def entity(self, name: str, *, connections: int = 100, documents: int = 100) -> EntityView | None:
        """An entity by its name, in any case, or None."""

    @abstractmethod
    async def of_passages(self, passage_ids: Sequence[str], *, limit: int = 20) -> list[str]:
        """Names of the entities that passages mention, most mentioned first."""

    @abstractmethod
    async def of_each_passage(self, passage_ids: Sequence[str], *, limit: int = 20) -> dict[str, list[str]]:
        """For each passage the names of at most `limit` entities that it mentions, best connected first."""

    @abstractmethod
    async def expand(self, names: Sequence[str], *, depth: int = 2, limit: int = 50, kind: str = "") -> Neighbourhood:
        """What is reached from entities in at most `depth` steps (2 at most), `limit` entities in all.

        With a `kind`, by entities of that type alone; those that it starts from may have another.
        """

    @abstractmethod
    async def search(self, text: str, *, limit: int = 20, kind: str = "") -> list[Entity]:
        """Entities whose name contains the text, best connected first; "" for all. `kind` is their type, "" for any."""

    @abstractmethod
    async def overview(self, *, limit: int = 300, kind: str = "") -> Neighbourhood:
        """The `limit` best connected entities, of a type if one is given, and the relationships among them."""

    @abstractmethod
    async def kinds(self) -> dict[str, int]:
        """How many entities there are of each type, the most frequent first; "" for those without one."""

    @abstractmethod
    async def naming(self, *names: str, limit: int = 20) -> tuple[list[str], int] | None:
        """Ids of the passages that name an entity, or that say how two are related, and how many there are.

        The earliest documents come first. None if an entity is not there. Names are in any case.
        """
