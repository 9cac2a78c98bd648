"""Reads what the headers of a request ask for, and who its end user is."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

from cragside.domain.errors import ValidationError
from cragside.domain.names import end_user_name

RAG_HEADER = b"x-rag"
CONTEXT_HEADER = b"x-rag-context"
MEMORY_HEADER = b"x-rag-memory"

RawHeaders = Iterable[tuple[bytes, bytes]]
Wish = Literal["always", "never"]

USER_HEADER = b"x-rag-user"
# Ours, Open WebUI's with ENABLE_FORWARD_USER_INFO_HEADERS, and LiteLLM's. The first one that is there counts.
USER_HEADERS = (USER_HEADER, b"x-openwebui-user-id", b"x-litellm-end-user-id", b"x-litellm-customer-id")
# Ours, OpenAI's (which LiteLLM and LibreChat pass on), and the one that replaces it. Anthropic's stands in
# `metadata`.
_FIELDS = ("user_id", "user", "safety_identifier")


def wish_of(headers: RawHeaders) -> Wish | None:
    """Return the value of `X-RAG`, None without one.

    In this module names of headers are in lower case, and values in any case. `ValidationError` is raised for any other
    value, and for two that differ.
    """
    return cast("Wish | None", _value_of(headers, RAG_HEADER, "X-RAG", ("always", "never")))


def memory_asked(headers: RawHeaders) -> bool | None:
    """Return the value of `X-RAG-Memory`, true or false, None without one."""
    value = _value_of(headers, MEMORY_HEADER, "X-RAG-Memory", ("true", "false"))
    return None if value is None else value == "true"


def context_asked(headers: RawHeaders) -> bool:
    """Tell if `X-RAG-Context` is true: the answer is to show the evidence."""
    return _value_of(headers, CONTEXT_HEADER, "X-RAG-Context", ("true", "false")) == "true"


def _value_of(headers: RawHeaders, name: bytes, shown: str, values: tuple[str, str]) -> str | None:
    given = {value.decode("latin-1").strip().lower() for each, value in headers if each == name}
    given.discard("")
    if not given:
        return None
    if len(given) == 1 and (value := given.pop()) in values:
        return value
    raise ValidationError(f"{shown} must be {values[0]} or {values[1]}.", field=shown)


def end_user_of(headers: Iterable[tuple[bytes, bytes]], body: Mapping[str, Any] | None = None) -> str:
    """Return the user whom the headers (names in lower case) or else the body name; "" if neither does."""
    given = dict(headers)
    names: list[object] = [header_text(given[header]) for header in USER_HEADERS if header in given]
    if body:
        names += [body.get(field) for field in _FIELDS]
        metadata = body.get("metadata")
        names += [metadata.get("user_id")] if isinstance(metadata, Mapping) else []
    return next(filter(None, map(end_user_name, names)), "")


def header_text(value: bytes) -> str:
    """Return a header as a text. Different bytes give different texts."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
