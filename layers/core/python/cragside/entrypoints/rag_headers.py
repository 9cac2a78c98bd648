"""The headers that say whether a prompt gets evidence and earlier exchanges, and whether the answer shows them."""

from collections.abc import Iterable
from typing import Literal, cast

from cragside.domain.errors import ValidationError

RAG_HEADER = b"x-rag"
CONTEXT_HEADER = b"x-rag-context"
MEMORY_HEADER = b"x-rag-memory"

RawHeaders = Iterable[tuple[bytes, bytes]]
Wish = Literal["always", "never"]


def wish_of(headers: RawHeaders) -> Wish | None:
    """The value of `X-RAG`, None without one.

    Here and below, names of headers are in lower case, values in any case. Any other value raises `ValidationError`,
    and so do two that differ.
    """
    return cast(Wish | None, _value_of(headers, RAG_HEADER, "X-RAG", ("always", "never")))


def memory_asked(headers: RawHeaders) -> bool | None:
    """The value of `X-RAG-Memory`, true or false, None without one."""
    value = _value_of(headers, MEMORY_HEADER, "X-RAG-Memory", ("true", "false"))
    return None if value is None else value == "true"


def context_asked(headers: RawHeaders) -> bool:
    """Whether `X-RAG-Context` is true: the answer is to show the evidence."""
    return _value_of(headers, CONTEXT_HEADER, "X-RAG-Context", ("true", "false")) == "true"


def _value_of(headers: RawHeaders, name: bytes, shown: str, values: tuple[str, str]) -> str | None:
    given = {value.decode("latin-1").strip().lower() for each, value in headers if each == name} - {""}
    if not given:
        return None
    if len(given) == 1 and (value := given.pop()) in values:
        return value
    raise ValidationError(f"{shown} must be {values[0]} or {values[1]}.", field=shown)
