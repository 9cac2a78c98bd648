"""Types of settings, and what they accept."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, AnyHttpUrl, BeforeValidator, Field, SecretStr, StringConstraints, TypeAdapter

from cragside.domain.addresses import origin_patterns
from cragside.domain.errors import ValidationError
from cragside.domain.names import workspace_name
from cragside.domain.preferences import PERSONAS

# The first segments of cragside's and Ollama's own paths.
_TAKEN = frozenset(
    {"api", "console", "docs", "documents", "enrichment", "favicon.ico", "graph", "health", "healthz", "ingest"}
    | {"metrics", "openapi.json", "query", "ready", "v1"}
)
_BUCKET_ADDRESS = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(?P<prefix>.*))?")


@dataclass(frozen=True, slots=True)
class BucketAddress:
    """A place in S3, written `s3://bucket/prefix`."""

    bucket: str
    prefix: str

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


def lowered(value: object) -> object:
    """Return a text in lower case."""
    return value.lower() if isinstance(value, str) else value


def _server(value: object) -> object:
    if not isinstance(value, str):
        return value
    address = value.strip() if "://" in value else f"http://{value.strip()}"
    return str(TypeAdapter(AnyHttpUrl).validate_python(address)).rstrip("/")


def _ollama(value: object) -> object:
    """Read an address as Ollama's programs read OLLAMA_HOST. For a server on every address, loopback is taken."""
    if not isinstance(value, str):
        return value
    scheme, _, rest = value.strip().rpartition("://")
    authority, slash, path = rest.partition("/")
    host, port = _host_and_port(authority)
    usual = {"": 11434, "http": 80, "https": 443}.get(scheme, 11434)
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)  # noqa: S104 (it is replaced)
    return _server(f"{scheme or 'http'}://{host}:{port or usual}{slash}{path}")


def _model_host(value: object) -> object:
    if not isinstance(value, str):
        return value
    api, _, address = value.strip().partition("+")
    if api not in ("ollama", "openai") or not address.startswith(("http://", "https://")):
        # The address is not quoted: it may have a password.
        raise ValueError("Write ollama+http://HOST:11434, or openai+https://HOST/v1")
    url = TypeAdapter(AnyHttpUrl).validate_python(address)
    if url.query or url.fragment:
        raise ValueError("It ends behind the path: no ? and no #")
    if api == "openai" and (url.username or url.password):
        raise ValueError("It has a user or a password; set OPENAI_API_KEY instead")
    bare = str(url).rstrip("/")
    if api == "openai" and not bare.endswith("/v1"):
        raise ValueError("An address of OpenAI's API ends in /v1")
    return f"{api}+{bare}"


def _rerank(value: object) -> object:
    if not isinstance(value, str):
        return value
    address = value.strip()
    if not address.startswith(("http://", "https://")):
        raise ValueError("Write http://HOST:PORT/v1/rerank, or https://HOST/v1/rerank")
    url = TypeAdapter(AnyHttpUrl).validate_python(address)
    if url.query or url.fragment:
        raise ValueError("It ends behind the path: no ? and no #")
    if url.username or url.password:
        raise ValueError("It has a user or a password; set RAG_RERANK_API_KEY instead")
    return str(url)


def _calibration(value: object) -> object:
    """Return a slope above zero, so that a better score is a better grade, and an intercept."""
    if not isinstance(value, str):
        return value
    try:
        slope, intercept = map(float, value.split(","))
    except ValueError:
        raise ValueError("Write SLOPE,INTERCEPT, such as 0.8,-1.5") from None
    if not (0 < slope < math.inf and math.isfinite(intercept)):
        raise ValueError("Write a SLOPE above 0 and a finite INTERCEPT, such as 0.8,-1.5")
    return slope, intercept


def _key(value: SecretStr) -> SecretStr:
    key = value.get_secret_value()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ValueError("It has characters that a key cannot have. Write printable ASCII without blanks")
    return value


def _host_and_port(authority: str) -> tuple[str, str]:
    found = re.fullmatch(r"(.*?)(?::(\d*))?", authority) if "]" in authority or authority.count(":") < 2 else None
    return (found[1], found[2] or "") if found else (f"[{authority}]", "")


def _bucket(value: object) -> object:
    if not isinstance(value, str):
        return value
    address = _BUCKET_ADDRESS.fullmatch(value.strip())
    if address is None:
        raise ValueError("Write a bucket as s3://bucket/prefix")
    return BucketAddress(address["bucket"], (address["prefix"] or "").strip("/"))


def _home(value: object) -> object:
    return _bucket(value) if isinstance(value, str) and "://" in value else value


def _expanded(value: Path | BucketAddress) -> Path | BucketAddress:
    return value.expanduser() if isinstance(value, Path) else value


def _workspace(value: str) -> str:
    try:
        return workspace_name(value)
    except ValidationError as error:
        raise ValueError(error.message.rstrip(".")) from None


def _persona(value: str) -> str:
    if value not in PERSONAS:
        raise ValueError(f"Choose one of the personas {', '.join(PERSONAS)}")
    return value


def _tokens(value: SecretStr) -> SecretStr:
    workspaces_by_token(value.get_secret_value())
    return value


def _origins(value: str) -> str:
    origin_patterns(value)
    return value


def address_in(model_host: str | None, api: str) -> str | None:
    """Return the address of a RAG_MODEL_HOST that speaks this API, None of any other."""
    spoken, _, address = (model_host or "").partition("+")
    return address if spoken == api else None


Count = Annotated[int, Field(ge=0)]
Connections = Annotated[int, Field(ge=1, le=1000)]
Sha256 = Annotated[str, StringConstraints(pattern=r"(?i)^[0-9a-f]{64}$", to_lower=True)]
ServerAddress = Annotated[str, BeforeValidator(_server)]
OllamaAddress = Annotated[str, BeforeValidator(_ollama)]
ModelHostAddress = Annotated[str, BeforeValidator(_model_host)]
RerankAddress = Annotated[str, BeforeValidator(_rerank)]
RerankCalibration = Annotated[tuple[float, float], BeforeValidator(_calibration)]
ApiKey = Annotated[SecretStr, AfterValidator(_key)]
Bucket = Annotated[BucketAddress, BeforeValidator(_bucket)]
StorePlace = Annotated[Path | BucketAddress, BeforeValidator(_home), AfterValidator(_expanded)]
File = Annotated[Path, AfterValidator(Path.expanduser)]
WorkspaceSetting = Annotated[str, AfterValidator(_workspace)]
Persona = Annotated[str, AfterValidator(_persona)]
WorkspaceTokens = Annotated[SecretStr, AfterValidator(_tokens)]
AllowedOrigins = Annotated[str, AfterValidator(_origins)]


def workspaces_by_token(text: str) -> dict[str, tuple[str, ...]]:
    """Read from JSON what each token opens. Raises `ValueError`, which quotes nothing: all may be tokens."""
    try:
        pairs = json.loads(text, object_pairs_hook=list)
    except (ValueError, RecursionError):
        raise ValueError('It must be JSON: {"token": ["workspace", ...]}') from None
    if not isinstance(pairs, list) or not all(isinstance(pair, tuple) for pair in pairs):
        raise ValueError('It must be a JSON object: {"token": ["workspace", ...]}')
    tokens = [token.strip() for token, _ in pairs]
    if not tokens or not all(token and token.isprintable() for token in tokens):
        raise ValueError("It has no token, an empty one, or one that cannot be printed")
    if len(set(tokens)) < len(tokens):
        raise ValueError("A token occurs twice; list its workspaces in one place")
    names = [_workspace_names(number, workspaces) for number, (_, workspaces) in enumerate(pairs, start=1)]
    return dict(zip(tokens, names, strict=True))


def _workspace_names(number: int, workspaces: object) -> tuple[str, ...]:
    if not isinstance(workspaces, list) or not workspaces:
        raise ValueError(f"Token number {number} needs a list of workspace names")
    try:
        return tuple(dict.fromkeys(map(workspace_name, workspaces)))
    except ValidationError:
        raise ValueError(
            f"Token number {number} has an invalid workspace name. A name has 1 to 63 letters, digits, dots, dashes or "
            "underscores, begins with a letter or digit, and does not end like a file of the store"
        ) from None


def _prefix(value: str) -> str:
    segments = value.split("/")[1:]
    if {".", ".."} & set(segments):
        raise ValueError("it must not have the segments . and ..")
    if segments[0] in _TAKEN:
        raise ValueError(f"/{segments[0]} is a path of cragside's or of Ollama's own: choose another one, such as /rag")
    return value


PathPrefix = Annotated[str, StringConstraints(pattern=r"^(/[A-Za-z0-9._~-]+)+$"), AfterValidator(_prefix)]


KvStorage = Literal["PGKVStorage", "RedisKVStorage", "SqliteKVStorage"]
VectorStorage = Literal["PGVectorStorage", "QdrantVectorDBStorage", "SqliteVectorStorage"]
GraphStorage = Literal["PGTableGraphStorage", "PGGraphStorage", "Neo4JStorage", "SqliteGraphStorage"]
DocStatusStorage = Literal["PGDocStatusStorage", "RedisDocStatusStorage", "SqliteDocStatusStorage"]

_NAMES: Mapping[str, tuple[str, ...]] = {
    "kv_storage": get_args(KvStorage),
    "vector_storage": get_args(VectorStorage),
    "graph_storage": get_args(GraphStorage),
    "doc_status_storage": get_args(DocStatusStorage),
}
# The settings that a storage needs, by the beginning of its name. The first one is what it is in.
_NEEDS = {
    "PG": ("POSTGRES_URI",),
    "Neo4J": ("NEO4J_URI", "POSTGRES_URI"),
    "Qdrant": ("QDRANT_URL", "POSTGRES_URI"),
    "Redis": ("REDIS_URI", "POSTGRES_URI"),
}
_EMBEDDED = "Sqlite"


def unknown_storage(field: str, *, in_files: bool) -> str:
    """Describe the fault in the name of a storage, and offer the names that fit the store."""
    fitting = [name for name in _NAMES[field] if name.startswith(_EMBEDDED) == in_files]
    others = "; others need POSTGRES_URI" if in_files else ""
    return f"there is no storage of this name. Unset it, or choose {' or '.join(fitting)}{others}."


def storage_conflicts(chosen: Mapping[str, str | None], given: Mapping[str, bool]) -> Iterator[tuple[str, str]]:
    """Yield the storages that cannot be used: the variable, and what to do.

    `chosen` has the storages by their roles. `given` says, by their variables, which addresses of servers are set.
    """
    for role, name in chosen.items():
        if name is None:
            continue
        variable = f"RAG_{role.upper()}_STORAGE"
        for needed in next((needs for kind, needs in _NEEDS.items() if name.startswith(kind)), ()):
            if not given[needed]:
                yield variable, f"{variable} is {name}, which needs {needed}. Set {needed}, or unset {variable}."
        if name.startswith(_EMBEDDED) and given["POSTGRES_URI"]:
            yield variable, f"{variable} is {name}, but POSTGRES_URI is set. Unset one of them."
