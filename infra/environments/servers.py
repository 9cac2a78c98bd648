"""The servers that functions reach in their network."""

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from infra.environments.base import Cidr, Data, SecretArn
from infra.environments.forms import form, unfit
from infra.environments.kinds import kind, one_of


def _readable(url: str) -> str:
    try:
        port_of(url)
    except ValueError as error:
        raise unfit("an address with a port from 1 to 65535") from error
    return url


HttpUrl = Annotated[
    str,
    form(r"https?://[^/?#@\s]+", "an address http://HOST:PORT or https://HOST:PORT, without user and path"),
    AfterValidator(_readable),
]
Neo4jUri = Annotated[
    str,
    form(
        r"(neo4j|bolt)(\+s|\+ssc)?://[^/?#@\s]+",
        "an address neo4j://HOST:PORT, or with bolt, +s or +ssc, without user and path",
    ),
    AfterValidator(_readable),
]
InstanceType = Annotated[
    str, form(r"[a-z][a-z0-9-]*\d[a-z0-9-]*\.[a-z0-9-]+", "a type of an instance, such as r7g.large")
]
# The image with drivers for graphics cards is for x86: a `g` behind the generation, as in g5g, means ARM.
GpuInstanceType = Annotated[
    str, form(r"[a-z]+\d+[a-fh-z]*\.[a-z0-9-]+", "a type of an instance with an x86 processor, such as g5.xlarge")
]
# A file in TOML has no word for what is not there.
Absent = BeforeValidator(lambda value: None if value == "none" else value)
_PORTS = {"http": 80, "https": 443}
_NEO4J_PORT = 7687
_REDIS_PORT = 6379


class Endpoints(Data):
    """Servers that exist. A secret holds a URI or password as its whole text."""

    ollama_url: HttpUrl | None = None
    searxng_url: HttpUrl | None = None
    postgres_uri_secret_arn: SecretArn | None = None
    postgres_port: int = Field(5432, ge=1, le=65_535)
    postgres_connections: int = Field(100, ge=4, description="Those that PostgreSQL, or its pooler, has for cragside.")
    neo4j_uri: Neo4jUri | None = None
    neo4j_username: str = "neo4j"
    neo4j_password_secret_arn: SecretArn | None = None
    redis_uri_secret_arn: SecretArn | None = None
    redis_port: int = Field(_REDIS_PORT, ge=1, le=65_535)
    qdrant_url: HttpUrl | None = None
    qdrant_api_key_secret_arn: SecretArn | None = None
    cidrs: tuple[Cidr, ...] = Field((), description="Where they are. Empty: at addresses of the network.")

    @property
    def variables(self) -> Mapping[str, str]:
        """The settings of a function that uses them."""
        neo4j = self.neo4j_uri and self.neo4j_username
        variables = {
            "OLLAMA_BASE_URL": self.ollama_url,
            "SEARXNG_HOST": self.searxng_url,
            "POSTGRES_URI_SECRET": self.postgres_uri_secret_arn,
            "NEO4J_URI": self.neo4j_uri,
            "NEO4J_USERNAME": neo4j,
            "NEO4J_PASSWORD_SECRET": self.neo4j_password_secret_arn,
            "REDIS_URI_SECRET": self.redis_uri_secret_arn,
            "QDRANT_URL": self.qdrant_url,
            "QDRANT_API_KEY_SECRET": self.qdrant_api_key_secret_arn,
        }
        return {name: value for name, value in variables.items() if value is not None}

    @property
    def urls(self) -> Mapping[str, str]:
        """The addresses that are not secret, by their fields."""
        names = ("ollama_url", "searxng_url", "neo4j_uri", "qdrant_url")
        return {name: url for name in names if (url := getattr(self, name)) is not None}

    @property
    def secret_arns(self) -> tuple[str, ...]:
        """The secrets that a function reads."""
        return tuple(value for name, value in self.variables.items() if name.endswith("_SECRET"))

    @property
    def ports(self) -> frozenset[int]:
        """The ports that a function reaches."""
        ports = {port_of(url) for url in self.urls.values()}
        if self.postgres_uri_secret_arn:
            ports.add(self.postgres_port)
        if self.redis_uri_secret_arn:
            ports.add(self.redis_port)
        return frozenset(ports)

    @property
    def has_postgres(self) -> bool:
        """Return True if documents can be stored here."""
        return self.postgres_uri_secret_arn is not None


class SelfHosted(Data):
    """Servers that the deployment creates on instances of its own."""

    data_instance: InstanceType = Field("r7g.large", description="PostgreSQL and Neo4j.")
    data_volume_gb: int = Field(100, ge=20, le=16_384)
    neo4j: bool = Field(True, description="Whether graphs are in Neo4j; else in PostgreSQL with AGE.")
    ollama_instance: Annotated[GpuInstanceType | None, Absent] = Field(
        "g5.xlarge", description="The GPU host. `none`: no Ollama."
    )
    ollama_volume_gb: int = Field(100, ge=30, le=16_384)
    searxng_instance: Annotated[InstanceType | None, Absent] = Field("t4g.small", description="`none`: no web search.")
    postgres_connections: int = Field(200, ge=4)
    backup_days: int = Field(14, ge=1, le=365)

    @property
    def ports(self) -> frozenset[int]:
        """The ports that a function reaches."""
        optional = {7687: self.neo4j, 11434: self.ollama_instance, 8080: self.searxng_instance}
        return frozenset({5432} | {port for port, there in optional.items() if there})

    @property
    def has_postgres(self) -> bool:
        """Return True if documents can be stored here."""
        return True


Servers = Annotated[
    Annotated[Endpoints, kind("Endpoints")] | Annotated[SelfHosted, kind("SelfHosted")], one_of(Endpoints, SelfHosted)
]


def port_of(url: str) -> int:
    """The port of an address, by its scheme if it says none."""
    parts = urlsplit(url)
    return parts.port or _PORTS.get(parts.scheme, _NEO4J_PORT)
