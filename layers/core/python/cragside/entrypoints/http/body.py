"""Reading a request body that may be anything."""

import json
import math
from typing import Any

from fastapi import Request

from cragside.domain.errors import PayloadTooLarge, ValidationError

# A client that is answered while it still sends may see a broken connection instead of the answer, so the rest of a
# body that is too large is read and thrown away, up to so many times the limit.
_READ_TO_THE_END = 4


async def whole_body(request: Request, limit: int) -> bytes:
    """The body. Raises `PayloadTooLarge` for more than `limit` bytes."""
    body, size = bytearray(), 0
    async for part in request.stream():
        size += len(part)
        if size <= limit:
            body += part
        elif size > _READ_TO_THE_END * limit:
            break
    if size > limit:
        raise PayloadTooLarge(f"The body is larger than {limit} bytes.", limit=limit)
    return bytes(body)


async def json_object(request: Request, limit: int) -> dict[str, Any]:
    """The body as a JSON object. Raises for bodies over `limit` bytes, for what is not JSON, and for other JSON."""
    body = await whole_body(request, limit)
    try:
        value = json.loads(body, parse_constant=_refused, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise ValidationError("The body is not valid JSON.") from error
    if not isinstance(value, dict):
        raise ValidationError("The body has to be a JSON object.")
    identifier = value.get("id")
    request.state.identifier = identifier if isinstance(identifier, str) else None
    return value


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refused(digits)


def _refused(constant: str) -> float:
    """NaN, Infinity and what overflows to it are no JSON and could not be answered as JSON."""
    raise ValueError(constant)
