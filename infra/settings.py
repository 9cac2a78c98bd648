"""Faults in an environment's `settings`. `settings.toml` says which are refused; all others of cragside's are taken."""

import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import urlsplit

from cragside.domain.errors import ConfigurationError
from cragside.settings import Settings, load_settings, variable_of
from infra.config import COLLECTOR

_SAID = tomllib.loads(Path(__file__).with_name("settings.toml").read_text(encoding="utf-8"))
REFUSED: Mapping[str, str] = _SAID["refused"]
OTEL_USED = frozenset(_SAID["opentelemetry"]["used"])
_OTEL = "OTEL_"
_LOG_LEVEL, _LEVELS = "POWERTOOLS_LOG_LEVEL", ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

_TRUE = frozenset({"1", "true", "t", "yes", "y", "on"})


def traced(settings: Mapping[str, str]) -> bool:
    """Return True if functions send traces to a collector of OpenTelemetry."""
    return settings.get("RAG_TRACES", "").lower() in _TRUE


def settings_problems(settings: Mapping[str, str], given: Mapping[str, str]) -> Iterator[str]:
    """Return the faults in an environment's settings, beside those that its fields give."""
    known = {variable_of(name) for name in Settings.model_fields}
    for name, value in settings.items():
        if name in REFUSED:
            yield f"settings: {name} cannot be set here: {REFUSED[name]}"
        elif name == _LOG_LEVEL:
            if value not in _LEVELS:
                yield f"settings: {name} is not {', '.join(_LEVELS)}"
        elif name not in known and not name.startswith((_OTEL, "RAG_")):
            yield f"settings: {name} is not a setting of cragside"
    yield from _of_traces(settings)
    try:
        load_settings({**given, **{name: value for name, value in settings.items() if name != _LOG_LEVEL}})
    except ConfigurationError as error:
        yield f"settings: {error.message}"


def _of_traces(settings: Mapping[str, str]) -> Iterator[str]:
    if traced(settings) and not any(settings.get(name) for name in COLLECTOR):
        yield f"settings: RAG_TRACES sends to the function itself: say in {COLLECTOR[-1]} where the collector is"
    for name, value in settings.items():
        if not name.startswith(_OTEL):
            continue
        if name.endswith("_HEADERS"):
            yield f"settings: {name} may hold a key, which a template would show: let the collector add its headers"
        elif name not in OTEL_USED:
            close = get_close_matches(name, OTEL_USED, n=1)
            hint = f". Did you mean {close[0]}?" if close else ""
            yield f"settings: {name} is not a variable of OpenTelemetry that functions use{hint}"
        elif name in COLLECTOR and ("@" in value or "?" in value):
            yield f"settings: {name} may hold a password, which a template would show: name host and port alone"
        elif name in COLLECTOR and not _is_address(value):
            yield f"settings: {name} is not an address such as http://collector.internal:4318"


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # no port
        return False
