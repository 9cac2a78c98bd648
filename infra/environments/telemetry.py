"""The variables of OpenTelemetry's SDK that an environment's `settings` may have: docs/watching.md says what for."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from urllib.parse import urlsplit

PREFIX = "OTEL_"

# The first that is set says where the collector is.
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")

# Those that cragside's tracer uses: no logs, no metrics, one exporter.
USED = frozenset(
    {
        *ENDPOINTS,
        "OTEL_ATTRIBUTE_COUNT_LIMIT",
        "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT",
        "OTEL_BSP_EXPORT_TIMEOUT",
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
        "OTEL_BSP_MAX_QUEUE_SIZE",
        "OTEL_BSP_SCHEDULE_DELAY",
        "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT",
        "OTEL_EXPORTER_OTLP_COMPRESSION",
        "OTEL_EXPORTER_OTLP_TIMEOUT",
        "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION",
        "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
        "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT",
        "OTEL_RESOURCE_ATTRIBUTES",
        "OTEL_SDK_DISABLED",
        "OTEL_SERVICE_NAME",
        "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
        "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
        "OTEL_SPAN_EVENT_COUNT_LIMIT",
        "OTEL_SPAN_LINK_COUNT_LIMIT",
        "OTEL_TRACES_SAMPLER",
        "OTEL_TRACES_SAMPLER_ARG",
    }
)


_TRUE = frozenset({"1", "true", "t", "yes", "y", "on"})


def traced(settings: Mapping[str, str]) -> bool:
    """Return True if functions send traces."""
    return settings.get("RAG_TRACES", "").lower() in _TRUE


def misused(settings: Mapping[str, str]) -> Iterator[str]:
    """Return the faults in the settings about traces, a line each."""
    if traced(settings) and not any(settings.get(name) for name in ENDPOINTS):
        yield f"settings: RAG_TRACES sends to the function itself: say in {ENDPOINTS[-1]} where the collector is"
    for name, value in settings.items():
        if not name.startswith(PREFIX):
            continue
        if name.endswith("_HEADERS"):
            yield f"settings: {name} may hold a key, which a template would show: let the collector add its headers"
        elif name not in USED:
            close = get_close_matches(name, USED, n=1)
            hint = f". Did you mean {close[0]}?" if close else ""
            yield f"settings: {name} is not a variable of OpenTelemetry that functions use{hint}"
        elif name in ENDPOINTS and ("@" in value or "?" in value):
            yield f"settings: {name} may hold a password, which a template would show: name host and port alone"
        elif name in ENDPOINTS and not _is_address(value):
            yield f"settings: {name} is not an address such as http://collector.internal:4318"


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # no port
        return False
