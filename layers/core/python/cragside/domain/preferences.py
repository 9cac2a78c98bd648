"""The preferences of a workspace: what its settings panel changes."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NoReturn

from cragside.domain.errors import ValidationError
from cragside.domain.personas import PERSONAS
from cragside.domain.search import Strategy
from cragside.domain.verdict import DEFAULT_THRESHOLD

EvidenceMode = Literal["corrective", "similarity", "off"]
# Which prompts through the proxy get evidence.
Prompts = Literal["command", "always", "never"]

RANGES: dict[str, tuple[float, float]] = {
    "chunk_tokens": (500, 2000),
    "chunk_overlap_tokens": (0, 1000),
    "similarity_results": (3, 10),
    "similarity_threshold": (0.0, 0.9),
    "threshold": (0.0, 0.95),
    "max_documents": (1, 20),
}
STRATEGIES: tuple[Strategy, ...] = ("similarity", "mmr")
MODES: tuple[EvidenceMode, ...] = ("corrective", "similarity", "off")
PROMPTS: tuple[Prompts, ...] = ("command", "always", "never")
# The settings that have a few valid values each.
_CHOICES: Mapping[str, Collection[str]] = {
    "similarity_strategy": STRATEGIES,
    "mode": MODES,
    "prompts": PROMPTS,
    "persona": PERSONAS,
}


@dataclass(frozen=True, slots=True)
class Preferences:
    """How new documents are cut, the defaults of plain similarity searches, and how prompts get evidence.

    A `similarity_threshold` of None is the one that fits the store's embedding model. `mode` is `corrective` (graded
    evidence; passages above `threshold` suffice, `max_documents` at most), `similarity` (what a plain similarity search
    finds) or `off` (no evidence). A `persona` of None is the plain instruction. `prompts` says which prompts through
    the proxy get evidence: those with the `command`, `always` (all that a user typed), or `never` (not even those).
    """

    chunk_tokens: int
    chunk_overlap_tokens: int
    similarity_results: int
    similarity_threshold: float | None
    similarity_strategy: Strategy
    mode: EvidenceMode = "corrective"
    threshold: float = DEFAULT_THRESHOLD
    max_documents: int = 5
    persona: str | None = None
    prompts: Prompts = "command"

    def changed(self, **changes: Any) -> "Preferences":
        """The preferences with these values. Raises `ValidationError` with the range of an invalid one."""
        for name, value in changes.items():
            if (choices := _CHOICES.get(name)) is not None:
                if value not in choices:
                    _refuse(name, f"{name} is one of {', '.join(choices)}.")
            else:
                _check_range(name, value)
        new = replace(self, **changes)
        if new.chunk_overlap_tokens >= new.chunk_tokens:
            _refuse("chunk_overlap_tokens", "chunk_overlap_tokens has to be smaller than chunk_tokens.")
        return new


CHANGEABLE = tuple(each.name for each in fields(Preferences))


def _check_range(name: str, value: Any) -> None:
    least, most = RANGES[name]
    whole = isinstance(least, int)
    number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if not number or not least <= value <= most:
        _refuse(name, f"{name} is a {'whole ' if whole else ''}number from {least} to {most}.")


def _refuse(name: str, message: str) -> NoReturn:
    raise ValidationError(message, field=name)
