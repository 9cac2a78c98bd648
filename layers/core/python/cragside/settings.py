"""What the environment may say. Read in one place, frozen, documented in docs/configuration.md."""

import difflib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import AnyHttpUrl, Field, SecretStr, TypeAdapter, field_validator, model_validator
from pydantic import ValidationError as PydanticValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from cragside.domain.command import DEFAULT_PREFIX
from cragside.domain.errors import ConfigurationError, ValidationError
from cragside.domain.origins import OriginPattern, origin_patterns
from cragside.domain.personas import PERSONAS
from cragside.domain.query import DEFAULT_WORKSPACE
from cragside.domain.verdict import DEFAULT_THRESHOLD
from cragside.domain.workspace_name import workspace_name

_BUCKET_ADDRESS = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(?P<prefix>.*))?")


@dataclass(frozen=True, slots=True)
class BucketAddress:
    """A place in S3, written `s3://bucket/prefix`."""

    bucket: str
    prefix: str

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


class Settings(BaseSettings):
    """Every setting with its default; the descriptions are the configuration reference."""

    model_config = SettingsConfigDict(env_prefix="RAG_", frozen=True, extra="forbid", populate_by_name=True)

    ollama_base_url: str | None = Field(
        None,
        validation_alias="OLLAMA_BASE_URL",
        description="Ollama's address. Unset: the embedded models do all the work, and the proxy passes requests on to "
        "http://127.0.0.1:11434.",
    )
    searxng_host: str | None = Field(
        None,
        validation_alias="SEARXNG_HOST",
        description="SearXNG's address. Unset: there is no web search, and a weak local result is reported as such.",
    )
    postgres_uri: SecretStr | None = Field(
        None, validation_alias="POSTGRES_URI", description="Reserved for the server storages; refused for now."
    )
    neo4j_uri: SecretStr | None = Field(
        None, validation_alias="NEO4J_URI", description="Reserved for the server storages; refused for now."
    )

    home: Path | BucketAddress = Field(
        Path("~/.cragside"),
        description="Folder of the embedded store, a subfolder a workspace. A store made by `cragside bake` is opened "
        "read-only; as `s3://bucket/prefix` it is fetched into the temporary directory at the first use.",
    )
    home_sha256: str | None = Field(
        None,
        pattern=r"^[0-9a-f]{64}$",
        description="SHA-256 of the baked store's `baked.json`, as `cragside bake` prints it: a store with another "
        "manifest is not opened. Needed for a store in a bucket, all of whose files are held against it.",
    )
    workspace: str = Field(
        DEFAULT_WORKSPACE,
        description="The workspace of requests that name none. Names that differ in case only are one.",
    )
    command_prefix: str = Field(DEFAULT_PREFIX, pattern=r"^\S+$", description="The word that asks for evidence.")
    threshold: float = Field(
        DEFAULT_THRESHOLD, ge=0, le=1, description="A passage passes only with a relevance above this."
    )
    decision: Literal["any", "mean"] = Field(
        "any", description="`any`: one passing passage keeps the local route. `mean`: the mean has to pass as well."
    )
    max_documents: int = Field(5, ge=1, le=50, description="Most documents injected into a prompt.")
    candidates: int = Field(8, ge=1, le=100, description="Most passages retrieved and graded.")
    timeout_seconds: float = Field(30, gt=0, le=900, description="The time budget of a request, in seconds.")
    fail_mode: Literal["open", "closed"] = Field(
        "open",
        description="When no component could be asked: `open` passes the question on without context, `closed` answers "
        "with `service_unavailable`.",
    )
    max_prompt_characters: int = Field(32_000, ge=1, description="Longest question, in characters.")
    max_body_bytes: int = Field(10_000_000, ge=1024, description="Longest request body, in bytes.")
    max_connections: int | None = Field(
        None,
        ge=8,
        description="Clients' connections that each process of `cragside serve` holds at once; a part of them is kept "
        "for `/healthz`. Unset: 4096, or as many as half of the process's file descriptors are enough for.",
    )
    max_open_workspaces: int | None = Field(
        None,
        ge=4,
        description="Workspaces that a process has open at once. Requests for others wait until one of these is not "
        "in use. Unset: 64, or as many as a quarter of the process's file descriptors is enough for.",
    )
    context_tokens: int = Field(
        3000, ge=100, description="Most tokens of evidence in a prompt; less where the model's context leaves less."
    )
    chat_model: str | None = Field(
        None,
        description="Model that grades, rewrites and extracts. Unset: the request's own, else qwen2.5:7b if the host "
        "has it, else `embedded`, which may also be named.",
    )
    embedding_model: str | None = Field(
        None,
        description="Model that embeds. Unset: the one that built the store; for a new store nomic-embed-text if the "
        "host has it, else `embedded`, which may also be named.",
    )
    ollama_parallel: int = Field(
        64, ge=1, description="Model calls in flight at once. Ollama queues what exceeds its own OLLAMA_NUM_PARALLEL."
    )
    chunk_tokens: int = Field(1000, ge=50, le=8000, description="Longest passage, in tokens.")
    chunk_overlap_tokens: int = Field(200, ge=0, le=4000, description="Tokens that neighbouring passages share.")
    part_passages: int = Field(
        20, ge=1, le=500, description="Most passages of a document that a worker enriches in one go."
    )
    max_file_bytes: int = Field(50 * 1024 * 1024, ge=1024, description="Largest file to index, in bytes.")
    uploads: BucketAddress | None = Field(
        None,
        description="Bucket through which files come that are larger than a request may be, as `s3://bucket/prefix`: "
        "`POST /v1/documents/uploads` has clients send them there. Unset: files come in requests.",
    )
    fetch_allow: str | None = Field(
        None,
        description="Hosts that pages are fetched from beside the public Internet, separated by commas: names "
        "(`wiki.example`, `*.example`), addresses and ranges (`10.1.0.0/16`). A client that may index a "
        "URL can then read what these hosts serve to this machine, on every port.",
    )
    queue_url: str | None = Field(
        None,
        pattern=r"^https?://\S+\.fifo$",
        description="URL of the SQS FIFO queue that holds the indexing tasks. Unset: a file in RAG_HOME.",
    )
    index_attempts: int = Field(
        3, ge=1, le=20, description="How often an indexing task is tried before it is given up."
    )
    index_parallel: int = Field(32, ge=1, le=256, description="Indexing tasks that a worker has in hand at once.")
    index_min_length: int = Field(
        50, ge=0, description="Shortest exchange (user and assistant together, in characters) that memory takes."
    )
    store_exchanges: bool = Field(
        False, description="Whether the proxy puts each finished exchange into memory, after its answer has ended."
    )
    memory_mode: Literal["local", "global", "hybrid", "naive", "mix"] = Field(
        "hybrid", description="How memory is searched when a request does not say."
    )
    memory_evidence: bool = Field(
        False,
        description="Whether `/rag` adds earlier exchanges behind the evidence, under a heading of their own, when a "
        "request does not say. They are never cited, and the verdict does not count them.",
    )
    similarity_results: int = Field(5, ge=3, le=10, description="Passages that a plain similarity search returns.")
    similarity_threshold: float = Field(
        0.7, ge=0.5, le=0.9, description="Least cosine of a passage that a plain similarity search returns."
    )
    similarity_strategy: Literal["similarity", "mmr"] = Field(
        "similarity", description="`mmr` (maximal marginal relevance) prefers passages that differ from each other."
    )
    persona: str | None = Field(
        None,
        description="Template of the system prompt that comes with evidence, such as `witness-de`; docs/api.md lists "
        "them. Unset: the plain instruction to use and cite it.",
    )
    saved_queries: int = Field(1000, ge=0, description="Queries remembered in a workspace; 0 remembers none.")
    api_token: SecretStr | None = Field(
        None, description="Token that requests have to bring (Bearer or X-API-Key). Unset: no authorisation."
    )
    workspace_tokens: SecretStr | None = Field(
        None,
        description='Tokens that open some workspaces only, as JSON: `{"token": ["workspace", ...]}`. RAG_API_TOKEN '
        "opens all. They have the scopes `read`, `write` and `chat`.",
    )
    tokens_file: Path | None = Field(
        None,
        description="File of the tokens that `cragside token` makes, as hashes, with scopes, workspaces and an expiry. "
        "Servers take up a change within 2 seconds. Others must not be able to write it.",
    )
    limit_workspaces: int | None = Field(
        None,
        ge=0,
        description="Most workspaces: a token without limits of its own makes no other when this many of those that it "
        "opens are there. It holds for requests, not for the command line. Unset: no limit.",
    )
    limit_documents: int | None = Field(
        None,
        ge=0,
        description="Most documents in the workspaces that a token opens, all together, for tokens without limits of "
        "their own. Unset: no limit.",
    )
    limit_bytes: int | None = Field(
        None,
        ge=0,
        description="Most bytes of documents (files or texts, and metadata) in the workspaces that a token opens, all "
        "together, for tokens without limits of their own. Unset: no limit.",
    )
    api_token_secret: str | None = Field(
        None,
        description="ARN of the AWS Secrets Manager secret that holds the token, in place of RAG_API_TOKEN. The "
        "Lambda function reads it at the first request that needs it, `cragside serve` at its start, and both again "
        "after five minutes. While it cannot be read the old token is trusted for 15 minutes at most.",
    )
    audit_log: str | None = Field(
        None,
        description="File that gets a line of JSON for each document taken in, read or deleted, each search, each "
        "change of settings, models or tokens, and each request that is denied; `stderr` for standard error. No "
        "contents, questions or tokens are in it.",
    )
    allow_anonymous: bool = Field(
        False,
        description="Whether the Lambda function starts without a token, for gateways that authorise by themselves.",
    )

    allow_origins: str | None = Field(
        None,
        description="Origins of web pages that may call cragside and ask for evidence, separated by commas: "
        "`https://app.example`, `http://nas.lan:*`, `https://*.app.example`, `chrome-extension://*`, `null`. Pages of "
        "this machine may call a server that is reached as localhost without being listed. For Ollama's own routes, "
        "list them in OLLAMA_ORIGINS as well.",
    )

    @model_validator(mode="before")
    @classmethod
    def _empty_is_unset(cls, given: Any) -> Any:
        # Compose's `${X:-}` hands over every variable that it mentions.
        return {name: value for name, value in given.items() if not isinstance(value, str) or value.strip()}

    @field_validator("ollama_base_url", "searxng_host", mode="before")
    @classmethod
    def _address(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        address = value.strip() if "://" in value else f"http://{value.strip()}"
        return str(TypeAdapter(AnyHttpUrl).validate_python(address)).rstrip("/")

    @field_validator(
        "api_token",
        "api_token_secret",
        "chat_model",
        "embedding_model",
        "persona",
        "postgres_uri",
        "neo4j_uri",
        mode="before",
    )
    @classmethod
    def _stripped(cls, value: object) -> object:
        return value.strip() if isinstance(value, str) else value

    @field_validator("workspace")
    @classmethod
    def _canonical(cls, value: str) -> str:
        try:
            return workspace_name(value)
        except ValidationError as error:
            raise ValueError(error.message.rstrip(".")) from None

    @field_validator("persona")
    @classmethod
    def _known_persona(cls, value: str | None) -> str | None:
        if value is not None and value not in PERSONAS:
            raise ValueError(f"There are the personas {', '.join(PERSONAS)}")
        return value

    @field_validator("workspace_tokens")
    @classmethod
    def _readable_tokens(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            _bound_tokens(value.get_secret_value())
        return value

    @field_validator("allow_origins")
    @classmethod
    def _readable_origins(cls, value: str | None) -> str | None:
        if value is not None:
            origin_patterns(value)
        return value

    @field_validator("home_sha256", mode="before")
    @classmethod
    def _lower(cls, value: object) -> object:
        return value.strip().lower() if isinstance(value, str) else value

    @field_validator("home", mode="before")
    @classmethod
    def _place(cls, value: object) -> object:
        if not isinstance(value, str) or "://" not in value:
            return value
        return _bucket_address(value, "A place that is no folder")

    @field_validator("uploads", mode="before")
    @classmethod
    def _bucket(cls, value: object) -> object:
        return _bucket_address(value, "A bucket") if isinstance(value, str) else value

    @field_validator("home")
    @classmethod
    def _expanded(cls, value: Path | BucketAddress) -> Path | BucketAddress:
        return value.expanduser() if isinstance(value, Path) else value

    @field_validator("tokens_file")
    @classmethod
    def _expanded_file(cls, value: Path | None) -> Path | None:
        return None if value is None else value.expanduser()

    @property
    def upstream(self) -> str:
        """The Ollama that the proxy passes requests on to."""
        return self.ollama_base_url or "http://127.0.0.1:11434"

    @property
    def asks_for_token(self) -> bool:
        """Whether requests have to bring a token."""
        return any((self.api_token, self.api_token_secret, self.workspace_tokens, self.tokens_file))

    @property
    def bound_tokens(self) -> dict[str, tuple[str, ...]]:
        """The workspaces that each token of RAG_WORKSPACE_TOKENS opens."""
        return _bound_tokens(self.workspace_tokens.get_secret_value()) if self.workspace_tokens else {}

    @property
    def allowed_origins(self) -> tuple[OriginPattern, ...]:
        """The origins of RAG_ALLOW_ORIGINS."""
        return origin_patterns(self.allow_origins) if self.allow_origins else ()


def _bucket_address(value: str, what: str) -> BucketAddress:
    address = _BUCKET_ADDRESS.fullmatch(value.strip())
    if address is None:
        raise ValueError(f"{what} is written s3://bucket/prefix")
    return BucketAddress(address["bucket"], (address["prefix"] or "").strip("/"))


def _bound_tokens(text: str) -> dict[str, tuple[str, ...]]:
    """Raises `ValueError` that says what is wrong without quoting anything: every part of it may be a token."""
    try:
        pairs = json.loads(text, object_pairs_hook=list)
    except (ValueError, RecursionError):
        raise ValueError('It has to be JSON: {"token": ["workspace", ...]}') from None
    if not isinstance(pairs, list) or not all(isinstance(pair, tuple) for pair in pairs):
        raise ValueError('It has to be a JSON object: {"token": ["workspace", ...]}')
    tokens = [token.strip() for token, _ in pairs]
    if not tokens or not all(token and token.isprintable() for token in tokens):
        raise ValueError("It has no token, an empty one, or one that cannot be printed")
    if len(set(tokens)) < len(tokens):
        raise ValueError("A token is in it twice; list its workspaces at one place")
    for number, (_, workspaces) in enumerate(pairs, start=1):
        if not isinstance(workspaces, list) or not workspaces:
            raise ValueError(f"Token number {number} needs a list of workspace names")
    names = [_workspace_names(number, workspaces) for number, (_, workspaces) in enumerate(pairs, start=1)]
    return dict(zip(tokens, names, strict=True))


def _workspace_names(number: int, workspaces: list[object]) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(map(workspace_name, workspaces)))
    except ValidationError:
        raise ValueError(
            f"Token number {number} names a workspace that there cannot be. A name has 1 to 63 letters, digits, dots, "
            "dashes or underscores, begins with a letter or digit, and does not end as files of the store do"
        ) from None


def variable_of(field_name: str) -> str:
    """The environment variable of a field."""
    alias = Settings.model_fields[field_name].validation_alias
    return alias if isinstance(alias, str) else f"RAG_{field_name.upper()}"


def load_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of the environment. Raises `ConfigurationError` that names a wrong or misspelt variable."""
    known = {variable_of(name): name for name in Settings.model_fields}
    for variable in environment:
        if variable.startswith("RAG_") and variable not in known:
            nearest = difflib.get_close_matches(variable, known, n=1, cutoff=0)[0]
            raise ConfigurationError(f"{variable} is not a setting. Did you mean {nearest}?", variable=variable)
    given = {known[variable]: value for variable, value in environment.items() if variable in known}
    try:
        settings = Settings(_env_file=None, **given)  # type: ignore[arg-type]
    except PydanticValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = str(first["loc"][0]) if first["loc"] else ""
        variable = variable_of(field) if field in Settings.model_fields else field
        raise ConfigurationError(f"{variable}: {first['msg']}.", variable=variable) from None
    for reserved in ("postgres_uri", "neo4j_uri"):
        if getattr(settings, reserved) is not None:
            variable = variable_of(reserved)
            raise ConfigurationError(
                f"{variable} is set, but this version has no server storages yet. Unset it to use the embedded store.",
                variable=variable,
            )
    if settings.api_token is not None and settings.api_token_secret is not None:
        raise ConfigurationError(
            "RAG_API_TOKEN and RAG_API_TOKEN_SECRET are both set. Set the one that holds the token.",
            variable="RAG_API_TOKEN_SECRET",
        )
    if settings.api_token is not None and settings.api_token.get_secret_value() in settings.bound_tokens:
        raise ConfigurationError(
            "RAG_WORKSPACE_TOKENS binds the token that RAG_API_TOKEN lets open every workspace. Give each its own.",
            variable="RAG_WORKSPACE_TOKENS",
        )
    if isinstance(settings.home, BucketAddress) and settings.home_sha256 is None:
        raise ConfigurationError(
            f"RAG_HOME is {settings.home}: set RAG_HOME_SHA256 to what `cragside bake` printed for this store.",
            variable="RAG_HOME_SHA256",
        )
    if settings.chunk_overlap_tokens >= settings.chunk_tokens:
        raise ConfigurationError(
            "RAG_CHUNK_OVERLAP_TOKENS has to be smaller than RAG_CHUNK_TOKENS.", variable="RAG_CHUNK_OVERLAP_TOKENS"
        )
    return settings
