"""What an examination finds of a component, and for whom it is made."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from cragside.entrypoints.error_lines import message_of

State = Literal["ok", "warning", "error", "not configured"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The state of one component. `remedy` says what to do, if anything."""

    component: str
    state: State
    version: str = ""
    detail: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Manner:
    """How components are examined. Each has `seconds` to answer.

    A `thorough` examination reads whole stores and tries models and searches. With `places`, it tells paths and
    addresses. `message` makes one line of an error.
    """

    seconds: float
    thorough: bool
    places: bool
    message: Callable[[Exception], str]


# An operator at the terminal may wait, and knows the machine.
FOR_OPERATORS = Manner(10.0, thorough=True, places=True, message=message_of)
