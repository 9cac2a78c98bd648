"""The header that asks for earlier exchanges along with the evidence."""

from collections.abc import Iterable

from cragside.domain.errors import ValidationError

MEMORY_HEADER = b"x-rag-memory"
_VALUES = {"true": True, "false": False, "": None}


def memory_asked(headers: Iterable[tuple[bytes, bytes]]) -> bool | None:
    """The value of `X-RAG-Memory`, None without one. Header names are in lower case.

    Raises `ValidationError` for a value other than true or false.
    """
    given = {value.decode("latin-1").strip().lower() for name, value in headers if name == MEMORY_HEADER}
    if not given:
        return None
    if len(given) == 1 and (value := given.pop()) in _VALUES:
        return _VALUES[value]
    raise ValidationError("X-RAG-Memory must be true or false.", field="memory")
