"""Every setting of docs/configuration.md, by how a deployment comes to it."""

from collections.abc import Iterator, Mapping

from cragside.domain.errors import ConfigurationError
from cragside.settings import load_settings
from infra.environments.telemetry import PREFIX, misused

_POOL = "knowledge.pool"

# A field says it, or it follows from fields.
BY_FIELD: Mapping[str, str] = {
    "OLLAMA_BASE_URL": "servers.ollama_url",
    "SEARXNG_HOST": "servers.searxng_url",
    "POSTGRES_URI_SECRET": "servers.postgres_uri_secret_arn",
    "NEO4J_URI": "servers.neo4j_uri",
    "NEO4J_USERNAME": "servers.neo4j_username",
    "NEO4J_PASSWORD_SECRET": "servers.neo4j_password_secret_arn",
    "REDIS_URI_SECRET": "servers.redis_uri_secret_arn",
    "QDRANT_URL": "servers.qdrant_url",
    "QDRANT_API_KEY_SECRET": "servers.qdrant_api_key_secret_arn",
    "RAG_POSTGRES_CONNECTIONS": _POOL,
    "RAG_NEO4J_CONNECTIONS": _POOL,
    "RAG_INDEX_ATTEMPTS": "knowledge.attempts",
    "RAG_FETCH_PAGES": "knowledge.fetch_pages",
    "RAG_HOME": "knowledge",
    "RAG_HOME_SHA256": "knowledge",
    "RAG_QUEUE_URL": "knowledge",
    "RAG_UPLOADS": "knowledge",
    "RAG_API_TOKEN_SECRET": "token_secret_arn",
    "RAG_ALLOW_ANONYMOUS": "operations.authorisation",
    # A body of text at most doubles its length in the JSON of an event, which has 6 MB at most.
    "RAG_MAX_BODY_BYTES": "Lambda's limit of an event",
}

# What an environment's `settings` may have.
FREE = frozenset(
    {
        "NEO4J_DATABASE",
        "RAG_ALLOW_ORIGINS",
        "RAG_CANDIDATES",
        "RAG_CHAT_MODEL",
        "RAG_CHUNK_OVERLAP_TOKENS",
        "RAG_CHUNK_TOKENS",
        "RAG_COMMAND_PREFIX",
        "RAG_CONTEXT_TOKENS",
        "RAG_DECISION",
        "RAG_DOC_STATUS_STORAGE",
        "RAG_EMBEDDING_MODEL",
        "RAG_FAIL_MODE",
        "RAG_FETCH_ALLOW",
        "RAG_GRAPH_STORAGE",
        "RAG_INDEX_MIN_LENGTH",
        "RAG_INDEX_PARALLEL",
        "RAG_KV_STORAGE",
        "RAG_LIMIT_BYTES",
        "RAG_LIMIT_DOCUMENTS",
        "RAG_LIMIT_WORKSPACES",
        "RAG_MAX_DOCUMENTS",
        "RAG_MAX_FILE_BYTES",
        "RAG_MAX_OPEN_WORKSPACES",
        "RAG_MAX_PROMPT_CHARACTERS",
        "RAG_MEMORY_EVIDENCE",
        "RAG_MEMORY_MODE",
        "RAG_MODE",
        "RAG_OCR_LANGUAGES",
        "RAG_OCR_SECONDS",
        "RAG_OLLAMA_PARALLEL",
        "RAG_PART_PASSAGES",
        "RAG_PERSONA",
        "RAG_POSTGRES_SECONDS",
        "RAG_QDRANT_CONNECTIONS",
        "RAG_REDIS_CONNECTIONS",
        "RAG_SAVED_QUERIES",
        "RAG_SECOND_OPINION",
        "RAG_SIMILARITY_RESULTS",
        "RAG_SIMILARITY_STRATEGY",
        "RAG_SIMILARITY_THRESHOLD",
        "RAG_SPECULATIVE_SEARCH",
        "RAG_STORE_EXCHANGES",
        "RAG_TELL_NONE",
        "RAG_THRESHOLD",
        "RAG_TIMEOUT_SECONDS",
        "RAG_TRACES",
        "RAG_VECTOR_STORAGE",
        "RAG_WORKSPACE",
    }
)

_IN_TEMPLATE = "a template and a function's configuration would show it; name its secret in {}"
_NO_FILE = "functions share no file"
_SERVER = "it is for `cragside serve`, which functions do not run"
UNSUITED: Mapping[str, str] = {
    "POSTGRES_URI": _IN_TEMPLATE.format("servers.postgres_uri_secret_arn"),
    "NEO4J_PASSWORD": _IN_TEMPLATE.format("servers.neo4j_password_secret_arn"),
    "REDIS_URI": _IN_TEMPLATE.format("servers.redis_uri_secret_arn"),
    "QDRANT_API_KEY": _IN_TEMPLATE.format("servers.qdrant_api_key_secret_arn"),
    "RAG_API_TOKEN": _IN_TEMPLATE.format("token_secret_arn"),
    "RAG_WORKSPACE_TOKENS": "a template and a function's configuration would show the tokens",
    "RAG_TOKENS_FILE": _NO_FILE,
    "RAG_AUDIT_LOG": f"{_NO_FILE}; API Gateway logs each request",
    "RAG_OCR_DATA": "the layers hold the languages of the extra `ocr`, and no other file",
    "RAG_MODEL_HOST": "the layers have the client of Ollama's API alone; set servers.ollama_url",
    "OLLAMA_API_KEY": "a value would stand in the template; functions reach an Ollama in their network",
    "OLLAMA_API_KEY_SECRET": "functions reach an Ollama in their network, without a key",
    "OPENAI_API_KEY": "it is for RAG_MODEL_HOST",
    "OPENAI_API_KEY_SECRET": "it is for RAG_MODEL_HOST",
    **dict.fromkeys(
        ("RAG_RERANK_URL", "RAG_RERANK_MODEL", "RAG_RERANK_SCORES", "RAG_RERANK_CALIBRATION"),
        "functions have no way to a rerank endpoint; set servers.ollama_url",
    ),
    "RAG_RERANK_API_KEY": "it is for RAG_RERANK_URL",
    "RAG_RERANK_API_KEY_SECRET": "it is for RAG_RERANK_URL",
    "OLLAMA_HOST": "it is for the proxy and the commands; set servers.ollama_url",
    "RAG_MAX_CONNECTIONS": f"{_SERVER}; set reserved_concurrency",
    "RAG_PATH_PREFIX": f"{_SERVER}; set operations.domain",
    "RAG_LOG_LEVEL": _SERVER,
    "RAG_PROMPTS": f"{_SERVER}: it is about prompts through the proxy",
    "RAG_LIST_RAG_MODELS": f"{_SERVER}: it is about the proxy's lists",
    "RAG_LOG_FORMAT": f"{_SERVER}; functions write JSON",
    "RAG_SLOW_SECONDS": _SERVER,
}


def problems_of(settings: Mapping[str, str], given: Mapping[str, str]) -> Iterator[str]:
    """Return the faults in an environment's settings, beside those that its fields give."""
    for name in settings:
        if name in BY_FIELD:
            yield f"settings: {name} is set by {BY_FIELD[name]}, not here"
        elif name in UNSUITED:
            yield f"settings: {name} is of no use here: {UNSUITED[name]}"
        elif name not in FREE and not name.startswith((PREFIX, "RAG_")):
            yield f"settings: {name} is not a setting of cragside"
    yield from misused(settings)
    try:
        load_settings({**given, **settings})
    except ConfigurationError as error:
        yield f"settings: {error.message}"
