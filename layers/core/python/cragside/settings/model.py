"""The model of all settings."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SecretStr, model_validator

from cragside.domain.addresses import OriginPattern, origin_patterns
from cragside.domain.query import DEFAULT_PREFIX, DEFAULT_WORKSPACE
from cragside.domain.verdict import DEFAULT_THRESHOLD
from cragside.settings.databases import DatabaseSettings, secret_of
from cragside.settings.values import (
    AllowedOrigins,
    ApiKey,
    Bucket,
    BucketAddress,
    Count,
    File,
    ModelHostAddress,
    OllamaAddress,
    PathPrefix,
    Persona,
    RerankAddress,
    RerankCalibration,
    ServerAddress,
    Sha256,
    StorePlace,
    WorkspaceSetting,
    WorkspaceTokens,
    address_in,
    lowered,
    workspaces_by_token,
)


class Settings(DatabaseSettings):
    """Every setting with its default. The descriptions are the configuration reference."""

    ollama_base_url: ServerAddress | None = Field(
        None,
        validation_alias="OLLAMA_BASE_URL",
        description="Ollama's address. Unset: the embedded models do all the work, and the proxy passes requests on to "
        "OLLAMA_HOST, else to http://127.0.0.1:11434.",
    )
    ollama_host: OllamaAddress | None = Field(
        None,
        validation_alias="OLLAMA_HOST",
        description="Where Ollama listens, written as for Ollama's own programs: `host`, `:port` or a URL. The proxy "
        "and `cragside ask` use it while OLLAMA_BASE_URL is unset. It makes no other part use Ollama.",
    )
    ollama_api_key: ApiKey | None = Field(
        None,
        validation_alias="OLLAMA_API_KEY",
        description="The key of Ollama, where a gateway or Ollama's cloud asks for one. It is sent to the configured "
        "Ollama alone, and in place of what clients of the proxy send as their key.",
    )
    ollama_api_key_secret: str | None = secret_of("OLLAMA_API_KEY")
    model_host: ModelHostAddress | None = Field(
        None,
        description="The host of the models, with the API that it speaks: `ollama+http://HOST:11434`, or "
        "`openai+https://HOST/v1` for vLLM, llama.cpp, LM Studio, LiteLLM or a hosted service, which needs the extra "
        "`openai`. It takes the place of OLLAMA_BASE_URL. docs/model-hosts.md tells what differs.",
    )
    openai_api_key: ApiKey | None = Field(
        None,
        validation_alias="OPENAI_API_KEY",
        description="The key of a RAG_MODEL_HOST that speaks OpenAI's API. It is sent to that host alone, and in place "
        "of what clients of the proxy send as their key.",
    )
    openai_api_key_secret: str | None = secret_of("OPENAI_API_KEY")
    rerank_url: RerankAddress | None = Field(
        None,
        description="Full address of a rerank endpoint, such as `http://HOST/v1/rerank`, which then grades passages "
        "without a second opinion: of TEI, vLLM, llama.cpp's server, Cohere or Jina. docs/model-hosts.md tells more.",
    )
    rerank_model: str | None = Field(None, description="The model that RAG_RERANK_URL is asked for. Unset: its own.")
    rerank_api_key: ApiKey | None = Field(None, description="The key of RAG_RERANK_URL. It is sent there alone.")
    rerank_api_key_secret: str | None = secret_of("RAG_RERANK_API_KEY")
    rerank_scores: Literal["probability", "logit"] = Field(
        "probability",
        description="What RAG_RERANK_URL answers. `probability`: scores from 0 to 1. `logit`: log-odds, as llama.cpp's "
        "server does for most models.",
    )
    rerank_calibration: RerankCalibration | None = Field(
        None,
        description="`SLOPE,INTERCEPT`, as `evals/calibrate_reranker.py` prints them for a model: the log-odds of a "
        "grade are SLOPE times those of the score, plus INTERCEPT. Unset: `1,0`, the score as it is.",
    )
    searxng_host: ServerAddress | None = Field(
        None,
        validation_alias="SEARXNG_HOST",
        description="SearXNG's address. Unset: there is no web search, and a weak local result is reported as such.",
    )
    home: StorePlace = Field(
        Path("~/.cragside"),
        description="Folder of the embedded store, with a subfolder for each workspace. A store made by "
        "`cragside bake` is opened read-only. A store at `s3://bucket/prefix` is downloaded to the temporary directory "
        "at first use.",
    )
    home_sha256: Sha256 | None = Field(
        None,
        description="SHA-256 of the baked store's `baked.json`, as `cragside bake` prints it. A store with another "
        "manifest is not opened. A store in a bucket needs it, and all its files are checked against it.",
    )
    generations: Bucket | None = Field(
        None,
        description="Versioned bucket with the stores of workspaces, as `s3://bucket/prefix`, in place of RAG_HOME. "
        "They are fetched to the temporary directory. With RAG_QUEUE_URL, documents are put into an inbox there, from "
        "where a Lambda function takes them and publishes the next generation.",
    )
    generation_seconds: float = Field(
        5.0,
        ge=0,
        le=3600,
        description="Seconds until a used workspace of RAG_GENERATIONS is looked at again for a newer generation.",
    )
    workspace: WorkspaceSetting = Field(
        DEFAULT_WORKSPACE,
        description="The workspace of requests that name none. Upper and lower case make no difference.",
    )
    command_prefix: str = Field(DEFAULT_PREFIX, pattern=r"^\S+$", description="The word that asks for evidence.")
    threshold: float = Field(
        DEFAULT_THRESHOLD, ge=0, le=1, description="A passage passes only with a relevance above this."
    )
    mode: Literal["corrective", "similarity", "off"] = Field(
        "corrective",
        description="How prompts get evidence. `corrective`: graded, with a web search where nothing is good enough. "
        "`similarity`: what a plain similarity search finds. `off`: none.",
    )
    prompts: Literal["command", "always", "never"] = Field(
        "command",
        description="Which prompts through the proxy get evidence. `command`: those that begin with the command. "
        "`always`: all that a user typed. `never`: none, not even with the command. docs/api.md says what else asks "
        "for evidence.",
    )
    list_rag_models: bool = Field(
        False,
        description="Whether `/api/tags` and `/v1/models` list each model a second time, with the suffix `+rag`: a "
        "model with it gets evidence without the command.",
    )
    decision: Literal["any", "mean"] = Field(
        "any", description="`any`: one passing passage keeps the local route. `mean`: the mean must pass as well."
    )
    max_documents: int = Field(
        5, ge=1, le=50, description="Most documents injected into a prompt. Three times as many for a list."
    )
    candidates: int = Field(
        8, ge=1, le=100, description="Most passages retrieved and graded. Twice as many for a list."
    )
    timeout_seconds: float = Field(30, gt=0, le=900, description="The time budget of a request, in seconds.")
    fail_mode: Literal["open", "closed"] = Field(
        "open",
        description="What happens when every component fails. `open`: the question is passed on without context. "
        "`closed`: the answer is `service_unavailable`.",
    )
    max_prompt_characters: int = Field(32_000, ge=1, description="Longest question, in characters.")
    max_body_bytes: int = Field(10_000_000, ge=1024, description="Longest request body, in bytes.")
    max_connections: int | None = Field(
        None,
        ge=8,
        description="Most client connections of each process of `cragside serve`. A part of them is kept for "
        "`/healthz`. Unset: 4096, or as many as half of the process's file descriptors allow.",
    )
    max_open_workspaces: int | None = Field(
        None,
        ge=4,
        description="Most workspaces that a process has open at once. Requests for others wait until one of these is "
        "not in use. Unset: 64, or as many as a quarter of the process's file descriptors allow.",
    )
    tell_none: bool = Field(
        True,
        description="Tell the model when the documents hold nothing on the question of a prompt with the command, so "
        "that its answer says so. `/v1/enrich` tells it only on request (`tell_none`).",
    )
    context_tokens: int = Field(
        3000, ge=100, description="Most tokens of evidence in a prompt. A model with a small context gets fewer."
    )
    chat_model: str | None = Field(
        None,
        description="Model that grades, rewrites and extracts; `embedded` is valid. Unset: the request's own, else "
        "qwen2.5:7b if an Ollama has it, else `embedded`.",
    )
    second_opinion: Annotated[Literal["auto", "always", "never"], BeforeValidator(lowered)] = Field(
        "auto",
        description="Whether the chat model judges passages where the embedded grader finds none. `auto`: unless it "
        "is known to have fewer than a billion parameters. `always`: whatever its size. `never`: no model is asked. A "
        "model without time for two passages is not asked in any case.",
    )
    speculative_search: bool = Field(
        False,
        description="Whether the web is searched while a chat model still judges the passages. The answer comes "
        "sooner, but SEARXNG_HOST gets each question that a model judges passages for, as rules shorten it.",
    )
    embedding_model: str | None = Field(
        None,
        description="Model that embeds; `embedded` is valid. Unset: the one that built the store. For a new store: "
        "nomic-embed-text if an Ollama has it, else `embedded`.",
    )
    ollama_parallel: int = Field(
        64, ge=1, description="Most concurrent model calls. Ollama queues calls beyond its own OLLAMA_NUM_PARALLEL."
    )
    chunk_tokens: int = Field(1000, ge=50, le=8000, description="Longest passage, in tokens.")
    chunk_overlap_tokens: int = Field(200, ge=0, le=4000, description="Tokens that neighbouring passages share.")
    part_passages: int = Field(
        20, ge=1, le=500, description="Most passages of a document that a worker annotates in one task."
    )
    max_file_bytes: int = Field(50 * 1024 * 1024, ge=1024, description="Largest file to index, in bytes.")
    ocr_languages: str = Field(
        "eng+deu",
        pattern=r"^[A-Za-z0-9_]+(\+[A-Za-z0-9_]+)*$",
        description="Languages of the text in pictures and scanned PDF, as Tesseract names them, joined by `+`. More "
        "languages take more time. The extra `ocr` brings English and German; others need RAG_OCR_DATA.",
    )
    ocr_data: Path | None = Field(
        None,
        description="Folder with a `LANGUAGE.traineddata` of each language in RAG_OCR_LANGUAGES. Unset: the files of "
        "the extra `ocr`.",
    )
    ocr_seconds: int = Field(
        240, ge=1, description="Most seconds that OCR of one file may take. A page takes one to three seconds."
    )
    uploads: Bucket | None = Field(
        None,
        description="Bucket for files that are larger than a request may be, as `s3://bucket/prefix`. Clients get an "
        "upload form from `POST /v1/documents/uploads`. Unset: files come in requests.",
    )
    fetch_allow: str | None = Field(
        None,
        description="Hosts that pages may be fetched from besides the public Internet, separated by commas: names "
        "(`wiki.example`, `*.example`), addresses and ranges (`10.1.0.0/16`). A client that may index a "
        "URL can then read what these hosts serve to this machine, on every port.",
    )
    fetch_pages: bool = Field(
        True,
        description="Whether pages and repositories may be fetched from URLs. `false` where there is no way to the "
        "Internet: requests that name a URL are refused at once, with a reason. Files can still be sent.",
    )
    queue_url: str | None = Field(
        None,
        pattern=r"^https?://\S+\.fifo$",
        description="URL of the SQS FIFO queue whose messages call a Lambda function for indexing tasks. The tasks "
        "are where the store is. Unset: workers look by themselves.",
    )
    index_attempts: int = Field(3, ge=1, le=20, description="Attempts of an indexing task before it is given up.")
    index_parallel: int = Field(32, ge=1, le=256, description="Most indexing tasks that a worker runs at once.")
    index_min_length: int = Field(
        50, ge=0, description="Shortest exchange (user and assistant together, in characters) that memory takes."
    )
    store_exchanges: bool = Field(
        False, description="Whether the proxy stores each finished exchange in memory, after its answer has ended."
    )
    memory_mode: Literal["local", "global", "hybrid", "naive", "mix"] = Field(
        "hybrid", description="How memory is searched when a request does not say."
    )
    memory_evidence: bool = Field(
        False,
        description="Whether `/rag` adds earlier exchanges after the evidence, under their own heading, when a request "
        "does not say. They are never cited, and the verdict does not count them.",
    )
    similarity_results: int = Field(5, ge=3, le=10, description="Passages that a plain similarity search returns.")
    similarity_threshold: float | None = Field(
        None,
        ge=0,
        le=0.9,
        description="Least cosine of a passage that a plain similarity search returns. Unset: the one that fits the "
        "store's embedding model, see docs/api.md.",
    )
    similarity_strategy: Literal["similarity", "mmr"] = Field(
        "similarity", description="`mmr` (maximal marginal relevance) prefers passages that differ from each other."
    )
    persona: Persona | None = Field(
        None,
        description="Template of the system prompt that comes with evidence, such as `witness-de`; docs/api.md lists "
        "them. Unset: the plain instruction to use and cite it.",
    )
    saved_queries: int = Field(1000, ge=0, description="Queries that a workspace remembers; 0 remembers none.")
    api_token: SecretStr | None = Field(
        None, description="Token that requests must carry (Bearer or X-API-Key). Unset: no authorisation."
    )
    workspace_tokens: WorkspaceTokens | None = Field(
        None,
        description='Tokens that open only some workspaces, as JSON: `{"token": ["workspace", ...]}`. RAG_API_TOKEN '
        "opens all. They have the scopes `read`, `write` and `chat`.",
    )
    tokens_file: File | None = Field(
        None,
        description="File of the tokens that `cragside token` makes, as hashes, with scopes, workspaces and an expiry. "
        "Servers notice a change within 2 seconds. Other users must not be able to write it.",
    )
    limit_workspaces: Count | None = Field(
        None,
        description="Most workspaces that a token without limits of its own may create: it creates no other when this "
        "many of those that it opens exist. It holds for requests, not for the command line. Unset: no limit.",
    )
    limit_documents: Count | None = Field(
        None,
        description="Most documents, in all workspaces that a token opens together, for tokens without limits of "
        "their own. Unset: no limit.",
    )
    limit_bytes: Count | None = Field(
        None,
        description="Most bytes of documents (files or texts, and metadata), in all workspaces that a token opens "
        "together, for tokens without limits of their own. Unset: no limit.",
    )
    api_token_secret: str | None = Field(
        None,
        description="ARN of the AWS Secrets Manager secret, or of the SSM parameter, that holds the token, in place of "
        "RAG_API_TOKEN; or two tokens, a line each, while clients go over from one to the other. The Lambda function "
        "reads it at the first request that needs it, and `cragside serve` at start. Both read it again after five "
        "minutes. While it cannot be read, the old token is trusted for at most 15 minutes.",
    )
    audit_log: str | None = Field(
        None,
        description="File that gets a line of JSON for each document that is added, read or deleted, each search, each "
        "change of settings, models or tokens, and each request that is denied; `stderr` for standard error. It never "
        "contains contents, questions or tokens.",
    )
    allow_anonymous: bool = Field(
        False,
        description="Whether the Lambda function starts without a token, behind a gateway that authorises requests.",
    )
    allow_origins: AllowedOrigins | None = Field(
        None,
        description="Origins of web pages that may call cragside and ask for evidence, separated by commas: "
        "`https://app.example`, `http://nas.lan:*`, `https://*.app.example`, `chrome-extension://*`, `null`. Pages of "
        "this machine may call a server that is reached as localhost without being listed. For Ollama's own routes, "
        "list them in OLLAMA_ORIGINS as well.",
    )
    path_prefix: PathPrefix | None = Field(
        None,
        description="Path below which a reverse proxy serves cragside, such as `/rag`. `cragside serve` then accepts "
        "requests with this prefix and without it. Unset: only without.",
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(lowered)] = Field(
        "info",
        description="Least level of the lines that `cragside serve` and its worker write to standard error. `info` has "
        "a line for each request, with its id, and `warning` only requests that ended with 500 or more. A line never "
        "contains a query string, a prompt or a token.",
    )
    log_format: Literal["text", "json"] = Field(
        "text", description="Form of these lines. `json`: an object on each line, for programs that collect logs."
    )
    slow_seconds: float = Field(
        2.0, ge=0, description="A request that takes this long has the time of each step in its line of the log."
    )
    traces: bool = Field(
        False,
        description="Whether each prompt that asks for evidence is traced: spans with time and outcome of its steps "
        "go to an OpenTelemetry collector, by OTLP over HTTP. It needs the extra `otel`. The environment variables of "
        "OpenTelemetry's SDK hold: OTEL_EXPORTER_OTLP_ENDPOINT says where the collector is, unset "
        "http://localhost:4318.",
    )

    @model_validator(mode="before")
    @classmethod
    def _empty_is_unset(cls, given: Any) -> Any:
        # Compose's `${X:-}` passes every variable that it mentions, if only as an empty text.
        return {name: value for name, value in given.items() if not isinstance(value, str) or value.strip()}

    def in_files(self, home: Path) -> "Settings":
        """Return these settings for a store in a folder that nobody else uses, with its own queue."""
        servers = ("postgres_uri", "postgres_uri_secret", "neo4j_uri", "qdrant_url", "redis_uri", "redis_uri_secret")
        elsewhere = ("home_sha256", "generations", "queue_url", *servers)
        return self.model_copy(update={"home": home, **dict.fromkeys(elsewhere)})

    @property
    def ollama_address(self) -> str | None:
        """The address of the Ollama whose models are used, None if there is none."""
        return self.ollama_base_url or address_in(self.model_host, "ollama")

    @property
    def openai_address(self) -> str | None:
        """The address, up to `/v1`, of the host with OpenAI's API whose models are used. None if there is none."""
        return address_in(self.model_host, "openai")

    @property
    def upstream(self) -> str:
        """The host that the proxy passes requests on to: what stands before a request's path, such as `/v1/models`."""
        if self.openai_address is not None:
            return self.openai_address.removesuffix("/v1")
        return self.ollama_address or self.ollama_host or "http://127.0.0.1:11434"

    @property
    def store_place(self) -> Path | BucketAddress:
        """Return the folder or the bucket of the workspaces, unless they are in PostgreSQL."""
        return self.generations or self.home

    @property
    def asks_for_token(self) -> bool:
        """Tell if requests must carry a token."""
        return any((self.api_token, self.api_token_secret, self.workspace_tokens, self.tokens_file))

    @property
    def bound_tokens(self) -> dict[str, tuple[str, ...]]:
        """The workspaces that each token of RAG_WORKSPACE_TOKENS opens."""
        return workspaces_by_token(self.workspace_tokens.get_secret_value()) if self.workspace_tokens else {}

    @property
    def allowed_origins(self) -> tuple[OriginPattern, ...]:
        """The origins of RAG_ALLOW_ORIGINS."""
        return origin_patterns(self.allow_origins) if self.allow_origins else ()


def variable_of(field_name: str) -> str:
    """Return the environment variable of a field."""
    alias = Settings.model_fields[field_name].validation_alias
    return alias if isinstance(alias, str) else f"RAG_{field_name.upper()}"
