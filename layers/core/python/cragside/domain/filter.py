"""Conditions on the payload of the passages that a search may return."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Condition:
    """What the payload's value at `key` has to be. Dots lead into objects.

    It `equals` `value` or is a list with it, `contains` it in any case, `begins` with it, or is `absent`.
    """

    key: str
    value: Any
    how: Literal["equals", "contains", "begins", "absent"] = "equals"

    def holds(self, payload: Mapping[str, Any]) -> bool:
        """Whether the payload meets the condition."""
        found: Any = payload
        for name in self.key.split("."):
            if not isinstance(found, Mapping) or name not in found:
                return self.how == "absent"
            found = found[name]
        if self.how == "absent":
            return False
        if self.how == "begins":
            return isinstance(found, str) and found.startswith(str(self.value))
        if self.how == "contains":
            return isinstance(found, str) and str(self.value).lower() in found.lower()
        if isinstance(found, list):
            return self.value in found
        return bool(found == self.value) and isinstance(found, bool) == isinstance(self.value, bool)


@dataclass(frozen=True, slots=True)
class Filter:
    """All conditions must hold. Without conditions, everything passes."""

    must: tuple[Condition, ...] = ()

    def admits(self, payload: Mapping[str, Any]) -> bool:
        """Whether the payload meets all conditions."""
        return all(condition.holds(payload) for condition in self.must)


EVERYTHING = Filter()
