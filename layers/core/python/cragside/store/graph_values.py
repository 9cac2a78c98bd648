"""Makes values of LightRAG's graph readable."""

from datetime import UTC, datetime
from typing import Any

from cragside.domain.knowledge import Entity, Relationship
from cragside.store.lean import GRAPH_FIELD_SEP

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
