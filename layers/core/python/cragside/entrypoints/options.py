"""What a request says of its evidence in headers."""

from collections.abc import Iterable

from cragside.domain.errors import ValidationError

MEMORY_HEADER = b"x-rag-memory"
_SAID = {"true": True, "false": False, "": None}


def memory_asked(headers: Iterable[tuple[bytes, bytes]]) -> bool | None:
    """What `X-RAG-Memory` says (lower-case names), None for nothing. Raises `ValidationError` for anything else."""
    given = {value.decode("latin-1").strip().lower() for name, value in headers if name == MEMORY_HEADER}
    if not given:
        return None
    if len(given) == 1 and (said := given.pop()) in _SAID:
        return _SAID[said]
    raise ValidationError("X-RAG-Memory has to be true or false.", field="memory")
