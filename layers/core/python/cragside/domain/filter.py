"""Which passages a search may return, by the payload of rag-stack's passages."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Condition:
    """`key` (dots lead into objects) equals `value`, is a list that has it, or, with `text`, contains it as text."""

    key: str
    value: Any
    text: bool = False

    def holds(self, payload: Mapping[str, Any]) -> bool:
        """Whether the payload meets the condition."""
        found: Any = payload
        for name in self.key.split("."):
            if not isinstance(found, Mapping) or name not in found:
                return False
            found = found[name]
        if self.text:
            return isinstance(found, str) and str(self.value).lower() in found.lower()
        if isinstance(found, list):
            return self.value in found
        return bool(found == self.value) and isinstance(found, bool) == isinstance(self.value, bool)


@dataclass(frozen=True, slots=True)
class Filter:
    """All conditions have to hold; none at all lets everything through."""

    must: tuple[Condition, ...] = ()

    def admits(self, payload: Mapping[str, Any]) -> bool:
        """Whether the payload meets all conditions."""
        return all(condition.holds(payload) for condition in self.must)


EVERYTHING = Filter()
