"""The trace that an invocation belongs to: what its caller says, else what Lambda says."""

import os
import re
from collections.abc import Mapping
from typing import Any

_W3C = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
# https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader
_XRAY = re.compile(r"Root=1-([0-9a-f]{8})-([0-9a-f]{24});Parent=([0-9a-f]{16});Sampled=1\b")


def traceparent_of(event: Any) -> str:
    """W3C's `traceparent` of an event, else X-Ray's of this invocation in its form if it is sampled, else ""."""
    headers = event.get("headers") if isinstance(event, Mapping) else None
    for name, value in headers.items() if isinstance(headers, Mapping) else ():
        if str(name).lower() == "traceparent" and isinstance(value, str) and _W3C.fullmatch(value):
            return value
    found = _XRAY.search(os.environ.get("_X_AMZN_TRACE_ID", ""))
    return f"00-{found[1]}{found[2]}-{found[3]}-01" if found else ""
