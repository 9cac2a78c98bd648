"""The model of an environment: everything that a deployment may be told, with its defaults and limits."""

import tomllib
from collections.abc import Mapping
from ipaddress import IPv4Network
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from infra.fields import (
    CertificateArn,
    Cidr,
    Data,
    DatabaseUserArn,
    KeyArn,
    ParameterName,
    SecretArn,
    TopicArn,
    WebAclArn,
    form,
    kind,
    one_of,
    resource_id,
    unfit,
)

# API Gateway ends an integration after at most 30 s, so the function must answer before that.
LONGEST_TIMEOUT = 28
# The `/tmp` that Lambda gives without being asked, and all that it gives together with SnapStart.
LEAST_TMP_MB = 512
_PORTS = {"http": 80, "https": 443}
_NEO4J_PORT = 7687
# The first that is set says where the collector of OpenTelemetry is.
COLLECTOR = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


class NotDeployable(Exception):
    """The environment cannot be deployed. Each line of the message has a reason and a remedy."""


class Throttle(Data):
    """The limits of the API. Further requests get 429."""

    requests_per_second: int = Field(ge=1, le=10_000)
    burst: int = Field(ge=1, le=5_000)


class KnowledgeLayer(Data):
    """A baked store that is deployed as a layer."""

    path: str = Field(min_length=1, description="The folder, relative to the top of the repository or absolute.")


class KnowledgeBucket(Data):
    """A baked store in a bucket, which the function fetches into `/tmp`."""

    uri: Annotated[
        str,
        form(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/[^*?\s]*[^*?\s/]", "s3://BUCKET/PREFIX, no slash behind it"),
    ]
    sha256: Annotated[str, form(r"[0-9a-f]{64}", "a hash of 64 digits from 0 to f")] = Field(
        description="The hash of its baked.json."
    )
    size_mb: int | None = Field(None, ge=1, description="What its files take: compared with tmp_mb at synthesis.")


class Indexed(Data):
    """A store that documents can be brought to, with a queue and a function that indexes."""

    index_concurrency: int = Field(2, ge=2, le=1000, description="Most index functions at once; SQS knows no fewer.")
    sweep_minutes: int = Field(5, ge=1, le=1440, description="How often tasks that nobody carries are queued again.")
    index_memory_mb: int = Field(3008, ge=512, le=10_240)
    index_tmp_mb: int = Field(LEAST_TMP_MB, ge=LEAST_TMP_MB, le=10_240)
    index_timeout_seconds: int = Field(600, ge=30, le=900)
    visibility_seconds: int = Field(3600, ge=180, le=43_200, description="At least 6 times the timeout.")


class Writable(Indexed):
    """A store on the environment's PostgreSQL."""

    pool: int = Field(2, ge=2, le=100, description="Connections of each function to PostgreSQL, and to Neo4j.")
    attempts: int = Field(3, ge=1, le=20)
    fetch_pages: bool = Field(
        False, description="Whether pages may be fetched from URLs: only where functions have a way to the Internet."
    )


class Generations(Indexed):
    """Stores of workspaces as objects in a bucket, of which each version is a generation. There is no database."""

    generations: int = Field(ge=1, le=100, description="Earlier ones that are kept, to go back to.")
    index_tmp_mb: int = Field(2048, ge=LEAST_TMP_MB, le=10_240, description="Three times the largest workspace.")


Knowledge = Annotated[
    Annotated[Writable, kind("Writable")]
    | Annotated[KnowledgeLayer, kind("KnowledgeLayer")]
    | Annotated[KnowledgeBucket, kind("KnowledgeBucket")]
    | Annotated[Generations, kind("Generations")]
    | Annotated[Literal["none"], kind("none")],
    one_of(Writable, KnowledgeLayer, KnowledgeBucket, Generations, words=("none",)),
]


class NewNetwork(Data):
    """A VPC that the deployment creates: two zones, with subnets that have no way out for the functions."""

    cidr: Cidr = Field("10.64.0.0/20", description="Its addresses, /16 to /24.")
    s3_prefix_list_id: Annotated[str, resource_id("pl", "prefix list")] | None = Field(
        None, description="The region's prefix list of S3. Unset: functions cannot reach S3."
    )

    @model_validator(mode="after")
    def _addresses(self) -> Self:
        found = IPv4Network(self.cidr)
        if not found.is_private or not 16 <= found.prefixlen <= 24:
            raise ValueError(f"cidr: {self.cidr} is not a private range between /16 and /24")
        return self


class ImportedNetwork(Data):
    """An existing VPC. Nothing in it is changed: docs/deployment.md lists what it has to offer."""

    vpc_id: Annotated[str, resource_id("vpc", "VPC")]
    cidr: Cidr
    zones: Annotated[tuple[str, ...], Field(min_length=2)]
    subnet_ids: Annotated[tuple[str, ...], Field(min_length=2)] = Field(
        description="The functions' subnets, one in each zone, in the order of `zones`."
    )
    security_group_id: Annotated[str, resource_id("sg", "security group")] = Field(description="The functions' group.")

    @model_validator(mode="after")
    def _subnets(self) -> Self:
        if len(self.subnet_ids) != len(self.zones):
            raise ValueError("subnet_ids has one subnet for each of zones")
        for name, ids in (("zones", self.zones), ("subnets", self.subnet_ids)):
            if twice := sorted({each for each in ids if ids.count(each) > 1}):
                raise ValueError(f"{name} that are named twice: {', '.join(twice)}")
        return self


Network = Annotated[
    Annotated[NewNetwork, kind("NewNetwork")] | Annotated[ImportedNetwork, kind("ImportedNetwork")],
    one_of(NewNetwork, ImportedNetwork),
]


def port_of(url: str) -> int:
    """Return the port of an address, by its scheme if it says none."""
    parts = urlsplit(url)
    return parts.port or _PORTS.get(parts.scheme, _NEO4J_PORT)


def _with_port(url: str) -> str:
    try:
        port_of(url)
    except ValueError as error:
        raise unfit("an address with a port from 1 to 65535") from error
    return url


HttpUrl = Annotated[
    str,
    form(r"https?://[^/?#@\s]+", "an address http://HOST:PORT or https://HOST:PORT, without user and path"),
    AfterValidator(_with_port),
]
Neo4jUri = Annotated[
    str,
    form(
        r"(neo4j|bolt)(\+s|\+ssc)?://[^/?#@\s]+",
        "an address neo4j://HOST:PORT, or with bolt, +s or +ssc, without user and path",
    ),
    AfterValidator(_with_port),
]
PostgresAddress = Annotated[
    str,
    form(
        r"postgres(ql)?://[^/?#@\s]+/[^?#@\s]+(\?[^#@\s]*)?",
        "an address postgresql://HOST:PORT/DATABASE, without user and password",
    ),
]


class Servers(Data):
    """Servers that exist. A secret holds a URI or password as its whole text, or PostgreSQL's the JSON of RDS."""

    ollama_url: HttpUrl | None = None
    searxng_url: HttpUrl | None = None
    postgres_uri_secret_arn: SecretArn | None = None
    postgres_address: PostgresAddress | None = Field(
        None, description="Where the secret is as RDS makes it, of user and password alone: what that does not say."
    )
    postgres_user_arn: DatabaseUserArn | None = Field(
        None, description="The user that functions log in as with tokens of IAM, where the URI says auth=iam."
    )
    postgres_port: int = Field(5432, ge=1, le=65_535)
    postgres_connections: int = Field(100, ge=4, description="Those that PostgreSQL, or its pooler, has for cragside.")
    neo4j_uri: Neo4jUri | None = None
    neo4j_username: str = "neo4j"
    neo4j_password_secret_arn: SecretArn | None = None
    redis_uri_secret_arn: SecretArn | None = None
    redis_port: int = Field(6379, ge=1, le=65_535)
    qdrant_url: HttpUrl | None = None
    qdrant_api_key_secret_arn: SecretArn | None = None
    cidrs: tuple[Cidr, ...] = Field((), description="Where they are. Empty: at addresses of the network.")

    @property
    def variables(self) -> dict[str, str]:
        """Return the settings of a function that uses them."""
        variables = {
            "OLLAMA_BASE_URL": self.ollama_url,
            "SEARXNG_HOST": self.searxng_url,
            "POSTGRES_URI": self.postgres_address,
            "POSTGRES_URI_SECRET": self.postgres_uri_secret_arn,
            "NEO4J_URI": self.neo4j_uri,
            "NEO4J_USERNAME": self.neo4j_uri and self.neo4j_username,
            "NEO4J_PASSWORD_SECRET": self.neo4j_password_secret_arn,
            "REDIS_URI_SECRET": self.redis_uri_secret_arn,
            "QDRANT_URL": self.qdrant_url,
            "QDRANT_API_KEY_SECRET": self.qdrant_api_key_secret_arn,
        }
        return {name: value for name, value in variables.items() if value is not None}

    @property
    def urls(self) -> dict[str, str]:
        """Return the addresses that are not secret, by their fields."""
        names = ("ollama_url", "searxng_url", "neo4j_uri", "qdrant_url")
        return {name: url for name in names if (url := getattr(self, name)) is not None}

    @property
    def secret_arns(self) -> list[str]:
        """Return the secrets that a function reads."""
        return [value for name, value in self.variables.items() if name.endswith("_SECRET")]

    @property
    def ports(self) -> set[int]:
        """Return the ports that a function reaches."""
        ports = {port_of(url) for url in self.urls.values()}
        ports |= {self.postgres_port} if self.has_postgres else set()
        return ports | ({self.redis_port} if self.redis_uri_secret_arn else set())

    @property
    def has_postgres(self) -> bool:
        """Return True if documents can be stored here."""
        return self.postgres_uri_secret_arn is not None


class Api(Data):
    """The kind of API, and what stands before it."""

    kind: Literal["http", "rest", "private"] = Field(
        "http", description="`private`: a REST API that the named endpoints of VPCs alone reach."
    )
    vpc_endpoint_ids: tuple[Annotated[str, resource_id("vpce", "VPC endpoint")], ...] = Field(
        (), description="Existing endpoints of execute-api, for `private`."
    )
    web_acl_arn: WebAclArn | None = Field(None, description="An existing web ACL of AWS WAF, for `rest` and `private`.")


class Alarms(Data):
    """Recipients of alarms, and the thresholds."""

    email: Annotated[str, form(r"[^@\s]+@[^@\s]+\.[^@\s]+", "an e-mail address")] | None = None
    topic_arn: TopicArn | None = Field(None, description="An existing topic in place of a new one.")
    errors_percent: float = Field(1, gt=0, le=100)
    p95_seconds: float = Field(10, gt=0, le=28)
    throttles: int = Field(1, ge=1)
    degraded_percent: float = Field(10, gt=0, le=100)
    queue_age_seconds: int = Field(1800, ge=60)

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.email is not None and self.topic_arn is not None:
            raise ValueError("name email or topic_arn: an existing topic has its own subscribers")
        return self


class Domain(Data):
    """A name of your own for the API. You create the DNS record, to the output `DomainTarget`."""

    name: Annotated[str, form(r"([a-z0-9-]+\.)+[a-z]{2,}", "a name in small letters, such as rag.example.com")]
    certificate_arn: CertificateArn


class Jwt(Data):
    """API Gateway lets requests pass that bring a JWT of this issuer."""

    issuer: Annotated[str, form(r"https://\S+", "an address that begins with https://")]
    audience: Annotated[tuple[str, ...], Field(min_length=1)]


# token: the application checks its own tokens.
Authorisation = Annotated[
    Annotated[Literal["token"], kind("token")] | Annotated[Literal["iam"], kind("iam")] | Annotated[Jwt, kind("Jwt")],
    one_of(Jwt, words=("token", "iam")),
]


class Operations(Data):
    """The choices of an operator; all of them may be left out."""

    alarms: Alarms = Alarms()
    monthly_budget_usd: int | None = Field(None, ge=1, description="Unset: no budget.")
    canary: bool = Field(False, description="Whether a new version first gets a tenth of the requests.")
    authorisation: Authorisation = "token"
    domain: Domain | None = None
    kms_key_arn: KeyArn | None = Field(None, description="Encrypts secrets, logs and queues. Unset: AWS' keys.")
    tags: Mapping[str, str] = Field(default_factory=dict)


class Bootstrap(Data):
    """The CDK's bootstrap of the account, and what it demands of roles."""

    qualifier: Annotated[str, form(r"[a-z0-9]{1,10}", "a qualifier: 1 to 10 small letters and digits")] = "hnb659fds"
    permissions_boundary: Annotated[str, form(r"[\w+=,.@-]{1,128}", "the name of a policy")] | None = Field(
        None, description="The policy that bounds every role of the deployment, by its name in the account."
    )


# The periods that CloudWatch Logs knows, in days:
# https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html
Retention = Literal[
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653
]  # fmt: skip


class Environment(Data):
    """One deployment of cragside. Account and region default to those of the credentials."""

    name: Annotated[
        str, form(r"[a-z]([a-z0-9-]{0,18}[a-z0-9])?", "a name such as dev or pr-123, of at most 20 letters")
    ]
    account: Annotated[str, form(r"\d{12}", "an account, which has twelve digits")] | None = None
    region: Annotated[str, form(r"[a-z]{2}(-[a-z]+)+-\d", "a region, such as eu-central-1")] | None = None
    bootstrap: Bootstrap = Bootstrap()
    python: Literal["3.11", "3.12", "3.13"] = "3.12"
    architecture: Literal["x86_64", "arm64"] = "x86_64"
    memory_mb: int = Field(1769, ge=512, le=10_240)  # one full processor from 1,769 MB on
    tmp_mb: int = Field(LEAST_TMP_MB, ge=LEAST_TMP_MB, le=10_240, description="The size of `/tmp`.")
    timeout_seconds: int = Field(LONGEST_TIMEOUT, ge=3, le=LONGEST_TIMEOUT)
    reserved_concurrency: int | None = Field(None, ge=1, le=1000)
    account_concurrency: int = Field(1000, ge=1, description="The account's limit of concurrent executions.")
    snap_start: bool = Field(False, description="Of the function that answers. That which indexes has none.")
    xray: bool = Field(True, description="Whether Lambda sends traces to X-Ray.")
    observability: Literal["none", "basic", "full"] = Field(
        "basic", description="basic: alarms on AWS' own metrics. full: cragside's metrics, their alarms, a dashboard."
    )
    log_retention_days: Retention = 30
    throttle: Throttle
    api: Api = Api()
    knowledge: Knowledge | None = Field(None, description="Unset: named when it is deployed.")
    network: Network | None = Field(None, description="Unset: functions are outside of a VPC.")
    servers: Servers = Servers()
    operations: Operations = Operations()
    settings: Mapping[str, str] = Field(default_factory=dict, description="Further settings of the functions.")
    token_secret_arn: SecretArn | None = Field(None, description="An existing secret with the API token as its text.")
    token_parameter: ParameterName | None = Field(
        None, description="A SecureString of Systems Manager in place of a secret. Both unset: a new secret."
    )
    keep_data: bool = Field(False, description="Whether the secret and the logs outlive the stack.")
    emulated: bool = Field(False, description="Deployed into an emulator that runs functions on this machine's Python.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.python == "3.11" and not self.emulated:
            raise ValueError(
                "Lambda's python3.11 has glibc 2.26, and numpy's wheels need 2.27: choose Python 3.12 or 3.13"
            )
        if self.account is not None and self.region is None:
            raise ValueError("an account needs a region")
        return self

    @property
    def stack_prefix(self) -> str:
        """Return the beginning of the names of all its stacks."""
        return f"cragside-{self.name}-"

    @property
    def stack_names(self) -> tuple[str, ...]:
        """Return the stacks that it deploys, the first that the others need first."""
        has = {
            "network": self.network is not None,
            "knowledge": isinstance(self.knowledge, Indexed),
            "service": True,
            "observability": self.observability != "none",
        }
        return tuple(f"{self.stack_prefix}{name}" for name, there in has.items() if there)

    @property
    def services(self) -> list[str]:
        """AWS' services that functions call from inside a network, S3 aside."""
        needed = {"sqs": isinstance(self.knowledge, Indexed), "ssm": self.token_parameter is not None}
        return ["secretsmanager", *(name for name, there in needed.items() if there)]

    @property
    def collector_port(self) -> int | None:
        """Return the port of an OpenTelemetry collector, if the settings name one."""
        found = [port_of(address) for name in COLLECTOR if (address := self.settings.get(name))]
        return found[0] if found else None

    @property
    def fitting_throttle(self) -> Throttle:
        """The throttle within the reserved concurrency: beyond that, Lambda would refuse what the API lets pass."""
        most, asked = self.reserved_concurrency or 10_000, self.throttle
        return Throttle(requests_per_second=min(asked.requests_per_second, most), burst=min(asked.burst, most))

    def changed(self, **fields: object) -> "Environment":
        """Return the environment with other values, checked as a whole. Raises pydantic's `ValidationError`."""
        return Environment.model_validate({**self.model_dump(), **fields})


_TABLES = tomllib.loads(Path(__file__).with_name("environments.toml").read_text(encoding="utf-8"))
NAMES = tuple(_TABLES)


def named(name: str | None, like: str | None = None) -> Environment:
    """Return the environment with this name, or a new one with the values of another. Raises `NotDeployable`."""
    known = like or name
    if like is not None and name in _TABLES:
        raise NotDeployable(f"like: {name} has values of its own: leave it out")
    if known not in _TABLES:
        *rest, last = NAMES
        problem = f"There is no environment {known!r}." if known else "No environment was named."
        raise NotDeployable(
            f"{problem} Name {', '.join(rest)} or {last}: -c env={NAMES[0]}, or ENV={NAMES[0]} for make. A new name "
            f"takes the values of one of them: -c env=pr-123 -c like={NAMES[0]}"
        )
    return Environment.model_validate({**_TABLES[known], "name": name or known})
