"""The headers that say whether a prompt gets evidence, and whether the answer shows it."""

from collections.abc import Iterable
from typing import Literal, cast

from cragside.domain.errors import ValidationError

RAG_HEADER = b"x-rag"
CONTEXT_HEADER = b"x-rag-context"

RawHeaders = Iterable[tuple[bytes, bytes]]
Wish = Literal["always", "never"]


def wish_of(headers: RawHeaders) -> Wish | None:
    """The value of `X-RAG`, None without one. Names of headers are in lower case, values in any case.

    Raises `ValidationError` for anything but always and never.
    """
    given = {value.decode("latin-1").strip().lower() for name, value in headers if name == RAG_HEADER} - {""}
    if not given:
        return None
    if len(given) == 1 and (value := given.pop()) in ("always", "never"):
        return cast(Wish, value)
    raise ValidationError("X-RAG must be always or never.", field="X-RAG")
