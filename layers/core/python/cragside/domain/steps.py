"""The steps of a run, for those who watch it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the graph that has ended: its measured milliseconds, its `facts`, and the components that failed."""

    name: str
    ms: float
    facts: Mapping[str, Any] = field(default_factory=dict)
    degraded: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Its JSON form."""
        return {"name": self.name, "ms": round(self.ms, 3), **self.facts}


# Called with each step when it ends.
Watch = Callable[[Step], None]
