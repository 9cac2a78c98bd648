"""Reads settings from an environment."""

import difflib
import os
from collections.abc import Iterator, Mapping

from pydantic import ValidationError as PydanticValidationError

from cragside.domain.errors import ConfigurationError
from cragside.settings.model import Settings, variable_of
from cragside.settings.values import BucketAddress, storage_conflicts, unknown_storage

# Each has a partner that ends in _SECRET and names a secret with its value.
_BY_REFERENCE = (
    *("api_token", "ollama_api_key", "openai_api_key", "rerank_api_key"),
    *("neo4j_password", "redis_uri", "qdrant_api_key"),
)


def load_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings of an environment. Raises `ConfigurationError` that names a wrong or misspelt variable."""
    known = {variable_of(name): name for name in Settings.model_fields}
    for variable in environment:
        if variable.startswith("RAG_") and variable not in known:
            nearest = difflib.get_close_matches(variable, known, n=1, cutoff=0)[0]
            raise ConfigurationError(f"{variable} is not a setting. Did you mean {nearest}?", variable=variable)
    given = {known[variable]: value for variable, value in environment.items() if variable in known}
    try:
        settings = Settings.model_validate(given)
    except PydanticValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = str(first["loc"][0]) if first["loc"] else ""
        variable = variable_of(field) if field in Settings.model_fields else field
        unknown = first["type"] == "literal_error" and field.endswith("_storage")
        in_files = not any(given.get(name, "").strip() for name in ("postgres_uri", "postgres_uri_secret"))
        message = f"{first['msg'].removeprefix('Value error, ')}."
        if unknown:
            message = unknown_storage(field, in_files=in_files)
        raise ConfigurationError(f"{variable}: {message}", variable=variable) from None
    for variable, conflict in _conflicts(settings):
        raise ConfigurationError(conflict, variable=variable)
    return settings


def _conflicts(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield settings that contradict others: the variable, and what to do."""
    for name in _BY_REFERENCE:
        if getattr(settings, name) is not None and getattr(settings, f"{name}_secret") is not None:
            plain, secret = variable_of(name), variable_of(f"{name}_secret")
            yield secret, f"{plain} and {secret} are both set. Unset one of them."
    if settings.model_host is not None and settings.ollama_base_url is not None:
        yield "RAG_MODEL_HOST", "RAG_MODEL_HOST and OLLAMA_BASE_URL are both set. Unset one of them."
    if settings.neo4j_uri is not None and not settings.on_postgres:
        yield (
            "NEO4J_URI",
            "NEO4J_URI is set without POSTGRES_URI, where the documents of a graph in Neo4j are. Set both, or neither.",
        )
    if settings.rerank_url is None and settings.rerank_model is not None:
        yield "RAG_RERANK_MODEL", "RAG_RERANK_MODEL is set without RAG_RERANK_URL. Set RAG_RERANK_URL, or unset it."
    given = {
        "POSTGRES_URI": settings.on_postgres,
        "NEO4J_URI": settings.neo4j_uri is not None,
        "QDRANT_URL": settings.qdrant_url is not None,
        "REDIS_URI": settings.on_redis,
    }
    yield from storage_conflicts(settings.storages, given)
    if settings.on_postgres and isinstance(settings.home, BucketAddress):
        yield (
            "POSTGRES_URI",
            f"POSTGRES_URI is set, but RAG_HOME is the baked store {settings.home}. Unset one of them.",
        )
    if settings.api_token is not None and settings.api_token.get_secret_value() in settings.bound_tokens:
        yield (
            "RAG_WORKSPACE_TOKENS",
            "RAG_WORKSPACE_TOKENS contains the token of RAG_API_TOKEN, which opens every workspace. Give each its "
            "own token.",
        )
    if isinstance(settings.home, BucketAddress) and settings.home_sha256 is None:
        yield (
            "RAG_HOME_SHA256",
            f"RAG_HOME is {settings.home}: set RAG_HOME_SHA256 to what `cragside bake` printed for this store.",
        )
    if settings.chunk_overlap_tokens >= settings.chunk_tokens:
        yield "RAG_CHUNK_OVERLAP_TOKENS", "RAG_CHUNK_OVERLAP_TOKENS must be smaller than RAG_CHUNK_TOKENS."
