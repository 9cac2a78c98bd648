"""The preferences of a workspace: the document pipeline's settings panel."""

from dataclasses import dataclass, fields, replace
from typing import Any, NoReturn

from cragside.domain.errors import ValidationError
from cragside.domain.search import Strategy

RANGES: dict[str, tuple[float, float]] = {
    "chunk_tokens": (500, 2000),
    "chunk_overlap_tokens": (0, 1000),
    "similarity_results": (3, 10),
    "similarity_threshold": (0.0, 0.9),
}
STRATEGIES: tuple[Strategy, ...] = ("similarity", "mmr")


@dataclass(frozen=True, slots=True)
class Preferences:
    """How new documents are cut, and the defaults of plain similarity searches.

    A `similarity_threshold` of None is the one that fits the store's embedding model.
    """

    chunk_tokens: int
    chunk_overlap_tokens: int
    similarity_results: int
    similarity_threshold: float | None
    similarity_strategy: Strategy

    def changed(self, **changes: Any) -> "Preferences":
        """The preferences with these values. Raises `ValidationError` with the range of an invalid one."""
        for name, value in changes.items():
            if name == "similarity_strategy":
                if value not in STRATEGIES:
                    _refuse(name, f"{name} is one of {', '.join(STRATEGIES)}.")
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
