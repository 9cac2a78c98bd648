"""Show LightRAG's graph as people read it: entity pages, searches and neighbourhoods."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

from cragside.domain.knowledge import Connection, Entity, EntityView, Neighbourhood, Relationship
from cragside.store.chunking import storable
from cragside.store.lightrag import GRAPH_FIELD_SEP
from cragside.store.open_store import Store, StoreAccess
from cragside.store.storages import GraphStorage, Properties, ordered

# What a list says of each of its rows: merged descriptions have thousands of characters, and keywords hundreds.
_BRIEF = 300
_KEYWORDS = 6
_UNNAMED = "related to"


def undescribed(value: dict[str, Any]) -> dict[str, Any]:
    """Return the properties without what passages say."""
    return {**value, "description": None, "keywords": None}


def entity_of(name: str, value: dict[str, Any], mentions: int) -> Entity:
    """Return a node, described in brief."""
    kind, described = value.get("entity_type") or "", brief(value.get("description"))
    return Entity(name, kind, described, mentions=mentions, last_seen=_iso(value.get("created_at")))


def relationship_of(source: str, target: str, value: dict[str, Any]) -> Relationship:
    """Return an edge in its direction, described in brief."""
    description = value.get("description")
    first = first_of(source, target, description)
    ends = (source, target) if first == source else (target, source)
    return Relationship(*ends, type_of(value), brief(description))


def first_of(source: str, target: str, description: str | None) -> str:
    """Return the end that the description names first, `source` when it does not name both."""
    shorter, longer = sorted((source.casefold(), target.casefold()), key=len)
    for fragment in _fragments(description):
        text = fragment.casefold()
        at_longer = text.find(longer)
        # "Python" is not named by "Python Software Foundation".
        at_shorter = text.replace(longer, " " * len(longer)).find(shorter)
        if at_longer >= 0 and at_shorter >= 0:
            first = longer if at_longer < at_shorter else shorter
            return source if source.casefold() == first else target
    return source


def type_of(value: dict[str, Any]) -> str:
    """Return the kind of relationship of an edge: its first keywords."""
    words = (value.get("keywords") or "").replace(GRAPH_FIELD_SEP, ",").split(",", _KEYWORDS)[:_KEYWORDS]
    return ", ".join(dict.fromkeys(word.strip() for word in words if word.strip())) or _UNNAMED


def _fragments(text: str | None) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in (text or "").split(GRAPH_FIELD_SEP) if part.strip()))


def readable(text: str | None) -> str:
    """Return the descriptions of passages, each on a line of its own, once."""
    return "\n".join(_fragments(text))


def brief(description: str | None) -> str:
    """Return the beginning of what passages say."""
    text = readable(description)
    return text if len(text) <= _BRIEF else f"{text[: _BRIEF - 1].rstrip()}…"


def _iso(seconds: Any) -> str | None:
    return datetime.fromtimestamp(seconds, UTC).isoformat() if isinstance(seconds, int) and seconds > 0 else None


DEEPEST = 2
# A subgraph larger than this is nothing to read. Its edges may grow with the square, so they are limited as well.
MOST_ENTITIES = 200
RELATIONSHIPS_AN_ENTITY = 4
# A hub's neighbours of one type are looked for among so many times as many neighbours more, until there are enough.
_WIDER = 4


class KnowledgeGraph:
    """Reads the entities of one workspace and what connects them.

    Failures raise `ServiceUnavailable("knowledge_base", ...)`.

    LightRAG keeps an edge once for both directions, with its ends in alphabetical order, and who did what to whom
    survives in its description alone. So an edge leads from the entity that its description names first; when no
    description names both, from the alphabetically first.
    """

    def __init__(self, access: StoreAccess) -> None:
        self._access = access

    async def entity(self, name: str, *, connections: int = 100, documents: int = 100) -> EntityView | None:
        """Return an entity by its name, exactly so if there is one, else in any case; None if there is neither.

        It was first seen when the earliest document that mentions it was accepted, and last when a passage last added
        to it.
        """
        if (graph := await self._current()) is None:
            return None
        found = await graph.named(name)
        if found is None:
            return None
        known, value = found
        if not (described := await graph.described([known])):
            return None
        sources = await graph.ledger.documents_mentioning(known, max(documents, 1))
        (brief,) = await graph.entities([known])
        first_seen = sources[0][2] if sources else None
        shown = sources[:documents]
        labels = await graph.ledger.labels([identifier for identifier, *_ in shown])
        description = readable(value.get("description")) if described[known] else ""
        return EntityView(
            replace(brief, description=description, first_seen=first_seen),
            tuple(await graph.connections(known, connections)),
            tuple((identifier, labels.get(identifier, name)) for identifier, name, _ in shown),
        )

    async def of_passages(self, passage_ids: Sequence[str], *, limit: int = 20) -> list[str]:
        """Return the entities that passages mention: by how many of the passages, then by their connections."""
        if (graph := await self._current()) is None:
            return []
        counts = Counter(name for _, name in await graph.mentioned_by(passage_ids))
        degrees = await graph.stored.degrees(counts)
        return sorted(degrees, key=lambda name: (-counts[name], -degrees[name], name))[:limit]

    async def within(
        self, passage_ids: Sequence[str], *, each: int = 20, limit: int = 50
    ) -> tuple[dict[str, list[str]], Neighbourhood]:
        """Map passages to at most `each` entities that they mention, best connected first; and show `limit` of these.

        The entities are shown without the number of passages that mention them.
        """
        if (graph := await self._current()) is None:
            return {}, Neighbourhood()
        mentioned: dict[str, list[str]] = {}
        for passage, name in await graph.mentioned_by(passage_ids):
            mentioned.setdefault(passage, []).append(name)
        degrees = await graph.degrees({name for names in mentioned.values() for name in names})
        of_each = {
            passage: sorted(degrees.keys() & mentioned[passage], key=lambda name: (-degrees[name], name))[:each]
            for passage in passage_ids
            if passage in mentioned
        }
        chosen = list(dict.fromkeys(name for names in of_each.values() for name in names))[:limit]
        return of_each, await graph.shown(chosen, capped=False, counted=False)

    async def expand(self, names: Sequence[str], *, depth: int = 2, limit: int = 50, kind: str = "") -> Neighbourhood:
        """Find what entities reach in `depth` steps (2 at most), `limit` entities in all (200 at most).

        Each step takes the strongest connections first. With a `kind`, it goes to entities of that type alone; those
        that it starts from may have another. Of the relationships it has the strongest, 4 for each entity.
        Descriptions are brief.
        """
        if (graph := await self._current()) is None:
            return Neighbourhood()
        depth, limit = min(depth, DEEPEST), min(limit, MOST_ENTITIES)
        start = await graph.known(names)
        reached, capped = start[:limit], len(start) > limit
        level = reached
        for _ in range(depth):
            if capped or not level:
                break
            level = await graph.beyond(level, set(reached), limit - len(reached) + 1, kind)
            capped = len(reached) + len(level) > limit
            reached = [*reached, *level][:limit]
        return await graph.shown(reached, capped=capped)

    async def search(self, text: str, *, limit: int = 20, kind: str = "") -> list[Entity]:
        """Find entities whose name has the text in any case, best connected first; "" for all.

        `kind` is their type, "" for any. Descriptions are brief.
        """
        if (graph := await self._current()) is None:
            return []
        return await graph.entities(await graph.stored.containing(storable(text.strip()), limit, storable(kind)))

    async def overview(self, *, limit: int = 300, kind: str = "") -> Neighbourhood:
        """Return the `limit` best connected entities, of a type if one is given.

        It has the strongest relationships among them, 4 for each entity.
        """
        if (graph := await self._current()) is None:
            return Neighbourhood()
        best = await graph.stored.containing("", limit + 1, storable(kind))
        return await graph.shown(best[:limit], capped=len(best) > limit)

    async def kinds(self) -> dict[str, int]:
        """Count the entities of each type, the most frequent first; "" for those without one.

        Those of removed documents count until the graph is rid of them.
        """
        if (graph := await self._current()) is None:
            return {}
        counts = await graph.stored.kinds()
        return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))

    async def naming(self, *names: str, limit: int = 20) -> tuple[list[str], int] | None:
        """Return ids of the passages that name an entity, or that say how two are related, and how many there are.

        The earliest documents come first. None if an entity is not there. Names are in any case. A relationship has no
        direction here.
        """
        if (graph := await self._current()) is None:
            return None
        found = [await graph.named(name) for name in names]
        known = [each[0] for each in found if each]
        if len(known) < len(names):
            return None
        if len(known) == 1:
            return await graph.ledger.passages_mentioning("entity", known[0], limit)
        return await graph.ledger.passages_mentioning("relation", GRAPH_FIELD_SEP.join(ordered(*known)), limit)

    async def _current(self) -> "_Graph | None":
        """Return the graph with all that is done, None without a store."""
        if (store := await self._access.existing()) is None:
            return None
        await store.ledger.driver.catch_up_graph()
        return _Graph(store)


class _Graph:
    """Reads the graph of one open store, for one answer: each node once."""

    def __init__(self, store: Store) -> None:
        self.stored: GraphStorage = store.engine.chunk_entity_relation_graph
        self.ledger = store.ledger
        self._read: dict[str, Properties] = {}

    async def shown(self, reached: Sequence[str], *, capped: bool, counted: bool = True) -> Neighbourhood:
        """Return these entities and the strongest relationships among them. `counted`: with their mentions."""
        if not reached:
            return Neighbourhood()
        most = RELATIONSHIPS_AN_ENTITY * len(reached)
        rows = await self.relations(await self.stored.among(reached, most + 1))
        entities = tuple(await self.entities(reached, counted=counted))
        return Neighbourhood(entities, tuple(relationship_of(*row) for row in rows[:most]), capped or len(rows) > most)

    async def mentioned_by(self, passage_ids: Sequence[str]) -> list[tuple[str, str]]:
        return await self.ledger.mentioned_by(list(dict.fromkeys(map(storable, passage_ids))))

    async def known(self, names: Sequence[str]) -> list[str]:
        """Find the entities of these names. Exact names take one read together."""
        wanted = list(dict.fromkeys(map(storable, names)))
        exact = await self.nodes(wanted)
        found = [(name,) if name in exact else await self.named(name) for name in wanted]
        return list(dict.fromkeys(each[0] for each in found if each))

    async def nodes(self, names: Collection[str]) -> dict[str, Properties]:
        """Return the nodes that are there. Each is read once."""
        if missing := [name for name in names if name not in self._read]:
            self._read |= await self.stored.nodes(missing)
        return {name: self._read[name] for name in names if name in self._read}

    async def degrees(self, names: Collection[str]) -> dict[str, int]:
        """Count the edges of those nodes that are there."""
        return await self.stored.node_degrees_batch(list(await self.nodes(names)))

    async def named(self, name: str) -> tuple[str, dict[str, Any]] | None:
        return await self.stored.named(storable(name))

    async def connections(self, name: str, limit: int) -> list[Connection]:
        found: list[Connection] = []
        strong = await self.stored.strongest(name, limit)
        rows = [(*((name, other) if forward else (other, name)), value) for other, value, forward in strong]
        for source, target, value in await self.relations(rows):
            other = target if source == name else source
            away = first_of(source, target, value.get("description")) == name
            direction: Literal["outgoing", "incoming"] = "outgoing" if away else "incoming"
            found.append(Connection(other, type_of(value), direction, brief(value.get("description"))))
        return found

    async def beyond(self, level: Sequence[str], seen: set[str], limit: int, kind: str) -> list[str]:
        """Return the strongest new neighbours of a level of a search."""
        weights: dict[str, float] = {}
        for node in level:
            for other, weight in await self.near(node, seen, limit, kind):
                weights[other] = max(weights.get(other, 0.0), weight or 0.0)
        return sorted(weights, key=lambda name: (-weights[name], name))[:limit]

    async def near(self, node: str, seen: set[str], limit: int, kind: str) -> list[tuple[str, float | None]]:
        """Return at least `limit` new neighbours of a node, of a type if one is given, or all that there are."""
        # As many more as are known already: these may be the strongest.
        wide = limit + len(seen)
        while True:
            rows = await self.stored.neighbours(node, wide)
            found = [row for row in rows if row[0] not in seen]
            if kind:
                nodes = await self.nodes([other for other, _ in found])
                found = [row for row in found if nodes.get(row[0], {}).get("entity_type") == kind]
            if not kind or len(found) >= limit or len(rows) < wide:
                return found
            wide *= _WIDER

    async def entities(self, names: Sequence[str], *, counted: bool = True) -> list[Entity]:
        found, described = await self.nodes(names), await self.described(names)
        # A hub is mentioned in a large share of the passages, which takes long to count.
        mentions = await self.ledger.mentions(names) if counted else {}
        return [
            entity_of(name, found[name] if described[name] else undescribed(found[name]), mentions.get(name, 0))
            for name in names
            if name in found and name in described
        ]

    async def described(self, names: Sequence[str]) -> dict[str, bool]:
        """Return the entities that a passage still names, each with False if a removed passage describes it too."""
        named_by_removed = await self.ledger.named_by_removed("entity", names)
        return {name: name not in named_by_removed for name in names if named_by_removed.get(name, True)}

    async def relations(self, rows: Sequence[tuple[str, str, dict[str, Any]]]) -> list[tuple[str, str, dict[str, Any]]]:
        """Return the edges that a passage still names, without the descriptions of removed passages."""
        keys = [GRAPH_FIELD_SEP.join(ordered(source, target)) for source, target, _ in rows]
        named_by_removed = await self.ledger.named_by_removed("relation", keys)
        return [
            (source, target, undescribed(value) if key in named_by_removed else value)
            for key, (source, target, value) in zip(keys, rows, strict=True)
            if named_by_removed.get(key, True)
        ]
