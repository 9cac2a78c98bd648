"""Fields that are one of several tables: which one is meant, so that an error is about that one alone."""

from collections.abc import Mapping
from difflib import get_close_matches

from pydantic import Discriminator, Tag

from infra.environments.base import Data
from infra.environments.forms import NOT

KIND = "kind"
_CLOSE = 0.5


def kind(name: str) -> Tag:
    """Marks a member of a union: the name of its class, or a word that stands for itself."""
    return Tag(f"<{name}>")


def one_of(*tables: type[Data], words: tuple[str, ...] = ()) -> Discriminator:
    """Chooses the table that has the most of the fields that were given; the first, if several do."""

    def chosen(value: object) -> str | None:
        if isinstance(value, tables):
            return kind(type(value).__name__).tag
        if isinstance(value, Mapping):
            return kind(max(tables, key=lambda table: _likeness(table, value)).__name__).tag
        return kind(value).tag if isinstance(value, str) and value in words else None

    names = " or ".join((*(repr(word) for word in words), *(f"a table of {table.__name__}" for table in tables)))
    return Discriminator(chosen, custom_error_type=KIND, custom_error_message=f"{NOT} {names}")


def _likeness(table: type[Data], given: Mapping[object, object]) -> float:
    fields = table.model_fields
    return sum(
        1 if name in fields else _CLOSE * bool(get_close_matches(str(name), fields, n=1, cutoff=0.8)) for name in given
    )
