"""The JSON forms of the agent contract: the enhanced request and the error envelope."""

import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cragside.domain.errors import CragsideError

if TYPE_CHECKING:
    from cragside.application.enricher import Enriched


def enhanced_request(enriched: "Enriched") -> dict[str, Any]:
    """Return the request with id, timestamp and `metadata.rag_context`; unchanged if it did not ask for evidence."""
    request, context = enriched.request, enriched.rag_context
    if context is None:
        return request
    metadata = {**(request.get("metadata") or {}), "rag_context": context.as_dict()}
    identity = {"id": str(uuid.uuid4()), "timestamp": _now()}
    given = {name: value for name, value in request.items() if value or name not in identity}
    return {**identity, **given, "metadata": metadata}


def error_envelope(error: CragsideError, identifier: Any = None) -> dict[str, Any]:
    """`{"error": {type, message, details, retryable}, "id", "timestamp"}`, with the request's id if it has one."""
    return {
        "error": {
            "type": error.code,
            "message": error.message,
            "details": dict(error.details),
            "retryable": error.retryable,
        },
        "id": identifier if isinstance(identifier, str) and identifier else str(uuid.uuid4()),
        "timestamp": _now(),
    }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
