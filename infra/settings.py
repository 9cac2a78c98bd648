"""Settings that an environment's `settings` may not have, each with the reason. All others of cragside's are taken."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from urllib.parse import urlsplit

from cragside.domain.errors import ConfigurationError
from cragside.settings import Settings, load_settings, variable_of
from infra.config import COLLECTOR

_POOL = "it is set by knowledge.pool"
_IN_TEMPLATE = "a template and a function's configuration would show it; name its secret in {}"
_NO_FILE = "functions share no file"
_SERVER = "it is for `cragside serve`, which functions do not run"
REFUSED: Mapping[str, str] = {
    # A field says it, or it follows from fields.
    "OLLAMA_BASE_URL": "it is set by servers.ollama_url",
    "SEARXNG_HOST": "it is set by servers.searxng_url",
    "POSTGRES_URI_SECRET": "it is set by servers.postgres_uri_secret_arn",
    "NEO4J_URI": "it is set by servers.neo4j_uri",
    "NEO4J_USERNAME": "it is set by servers.neo4j_username",
    "NEO4J_PASSWORD_SECRET": "it is set by servers.neo4j_password_secret_arn",
    "REDIS_URI_SECRET": "it is set by servers.redis_uri_secret_arn",
    "QDRANT_URL": "it is set by servers.qdrant_url",
    "QDRANT_API_KEY_SECRET": "it is set by servers.qdrant_api_key_secret_arn",
    "RAG_POSTGRES_CONNECTIONS": _POOL,
    "RAG_NEO4J_CONNECTIONS": _POOL,
    "RAG_INDEX_ATTEMPTS": "it is set by knowledge.attempts",
    "RAG_FETCH_PAGES": "it is set by knowledge.fetch_pages",
    **dict.fromkeys(("RAG_HOME", "RAG_HOME_SHA256", "RAG_QUEUE_URL", "RAG_UPLOADS"), "it is set by knowledge"),
    "RAG_API_TOKEN_SECRET": "it is set by token_secret_arn or token_parameter",
    "RAG_ALLOW_ANONYMOUS": "it is set by operations.authorisation",
    # A body of text at most doubles its length in the JSON of an event, which has 6 MB at most.
    "RAG_MAX_BODY_BYTES": "it is set by Lambda's limit of an event",
    # A template would show it.
    "POSTGRES_URI": _IN_TEMPLATE.format("servers.postgres_uri_secret_arn"),
    "NEO4J_PASSWORD": _IN_TEMPLATE.format("servers.neo4j_password_secret_arn"),
    "REDIS_URI": _IN_TEMPLATE.format("servers.redis_uri_secret_arn"),
    "QDRANT_API_KEY": _IN_TEMPLATE.format("servers.qdrant_api_key_secret_arn"),
    "RAG_API_TOKEN": _IN_TEMPLATE.format("token_secret_arn"),
    "RAG_WORKSPACE_TOKENS": "a template and a function's configuration would show the tokens",
    "OLLAMA_API_KEY": "a value would stand in the template; functions reach an Ollama in their network",
    # Functions have no use for it.
    "RAG_TOKENS_FILE": _NO_FILE,
    "RAG_AUDIT_LOG": f"{_NO_FILE}; API Gateway logs each request",
    "RAG_OCR_DATA": "the layers hold the languages of the extra `ocr`, and no other file",
    "RAG_MODEL_HOST": "the layers have the client of Ollama's API alone; set servers.ollama_url",
    "OLLAMA_API_KEY_SECRET": "functions reach an Ollama in their network, without a key",
    **dict.fromkeys(("OPENAI_API_KEY", "OPENAI_API_KEY_SECRET"), "it is for RAG_MODEL_HOST"),
    **dict.fromkeys(
        ("RAG_RERANK_URL", "RAG_RERANK_MODEL", "RAG_RERANK_SCORES", "RAG_RERANK_CALIBRATION"),
        "functions have no way to a rerank endpoint; set servers.ollama_url",
    ),
    **dict.fromkeys(("RAG_RERANK_API_KEY", "RAG_RERANK_API_KEY_SECRET"), "it is for RAG_RERANK_URL"),
    "OLLAMA_HOST": "it is for the proxy and the commands; set servers.ollama_url",
    "RAG_MAX_CONNECTIONS": f"{_SERVER}; set reserved_concurrency",
    "RAG_PATH_PREFIX": f"{_SERVER}; set operations.domain",
    "RAG_LOG_LEVEL": f"{_SERVER}; set POWERTOOLS_LOG_LEVEL",
    "RAG_PROMPTS": f"{_SERVER}: it is about prompts through the proxy",
    "RAG_LIST_RAG_MODELS": f"{_SERVER}: it is about the proxy's lists",
    "RAG_LOG_FORMAT": f"{_SERVER}; functions write JSON",
    "RAG_SLOW_SECONDS": _SERVER,
}
_LOG_LEVEL, _LEVELS = "POWERTOOLS_LOG_LEVEL", ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

# The variables of OpenTelemetry's SDK that cragside's tracer uses: no logs, no metrics, one exporter.
_OTEL = "OTEL_"
OTEL_USED = frozenset(
    {
        *COLLECTOR,
        *(f"OTEL_BSP_{name}" for name in ("EXPORT_TIMEOUT", "MAX_QUEUE_SIZE", "SCHEDULE_DELAY")),
        *(f"OTEL_{name}_ATTRIBUTE_COUNT_LIMIT" for name in ("EVENT", "LINK", "SPAN")),
        *(f"OTEL_EXPORTER_OTLP_{name}" for name in ("COMPRESSION", "TIMEOUT", "TRACES_COMPRESSION", "TRACES_TIMEOUT")),
        *(f"OTEL_{name}" for name in ("ATTRIBUTE_COUNT_LIMIT", "ATTRIBUTE_VALUE_LENGTH_LIMIT", "RESOURCE_ATTRIBUTES")),
        *(f"OTEL_SPAN_{name}_LIMIT" for name in ("ATTRIBUTE_VALUE_LENGTH", "EVENT_COUNT", "LINK_COUNT")),
        *(f"OTEL_{name}" for name in ("SDK_DISABLED", "SERVICE_NAME", "TRACES_SAMPLER", "TRACES_SAMPLER_ARG")),
    }
)
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
