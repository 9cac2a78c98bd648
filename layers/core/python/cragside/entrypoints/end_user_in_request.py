"""Finds who the end user of a request is: memory separates the users who share a token."""

from collections.abc import Iterable, Mapping
from typing import Any

from cragside.domain.names import end_user_name

USER_HEADER = b"x-rag-user"
# Ours, Open WebUI's with ENABLE_FORWARD_USER_INFO_HEADERS, and LiteLLM's. The first one that is there counts.
USER_HEADERS = (USER_HEADER, b"x-openwebui-user-id", b"x-litellm-end-user-id", b"x-litellm-customer-id")
# Ours, OpenAI's (which LiteLLM and LibreChat pass on), and the one that replaces it. Anthropic's stands in
# `metadata`.
_FIELDS = ("user_id", "user", "safety_identifier")


def end_user_of(headers: Iterable[tuple[bytes, bytes]], body: Mapping[str, Any] | None = None) -> str:
    """The user whom the headers (names in lower case) or else the body name; "" if neither does."""
    given = dict(headers)
    names: list[object] = [_text(given[header]) for header in USER_HEADERS if header in given]
    if body:
        names += [body.get(field) for field in _FIELDS]
        metadata = body.get("metadata")
        names += [metadata.get("user_id")] if isinstance(metadata, Mapping) else []
    return next(filter(None, map(end_user_name, names)), "")


def _text(value: bytes) -> str:
    """The text of a header. Bytes that differ give texts that differ."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
