"""The model of an environment, checked before the synthesis."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from infra.environments.base import Data, SecretArn
from infra.environments.forms import form
from infra.environments.knowledge import Knowledge, Writable
from infra.environments.network import Network
from infra.environments.operations import Operations
from infra.environments.servers import Endpoints, Servers, port_of
from infra.environments.telemetry import ENDPOINTS

Name = Literal["dev", "staging", "prod"]
Architecture = Literal["x86_64", "arm64"]
Python = Literal["3.11", "3.12", "3.13"]

# The periods that CloudWatch Logs knows, in days:
# https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html
Retention = Literal[
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653
]  # fmt: skip

# API Gateway ends an integration after at most 30 s, so the function must answer before that.
LONGEST_TIMEOUT = 28


class NotDeployable(Exception):
    """The environment cannot be deployed. Each line of the message has a reason and a remedy."""


class UnknownEnvironment(NotDeployable):
    """No environment has this name. The message lists the existing ones."""

    def __init__(self, name: str | None, known: tuple[str, ...]) -> None:
        *rest, last = known
        choice = f"{', '.join(rest)} or {last}"
        problem = f"There is no environment {name!r}." if name else "No environment was named."
        super().__init__(f"{problem} Name {choice}: -c env={known[0]}, or ENV={known[0]} for make")


class Throttle(Data):
    """The limits of the API. Further requests get 429."""

    requests_per_second: int = Field(ge=1, le=10_000)
    burst: int = Field(ge=1, le=5_000)


class Environment(Data):
    """One deployment of cragside. Account and region default to those of the credentials."""

    name: Name
    account: Annotated[str, form(r"\d{12}", "an account, which has twelve digits")] | None = None
    region: Annotated[str, form(r"[a-z]{2}(-[a-z]+)+-\d", "a region, such as eu-central-1")] | None = None
    python: Python = "3.12"
    architecture: Architecture = "x86_64"
    memory_mb: int = Field(1769, ge=512, le=10_240)  # one full processor from 1,769 MB on
    timeout_seconds: Annotated[int, Field(ge=3, le=LONGEST_TIMEOUT)] = LONGEST_TIMEOUT
    reserved_concurrency: int | None = Field(None, ge=1, le=1000)
    account_concurrency: int = Field(1000, ge=1, description="The account's limit of concurrent executions.")
    snap_start: bool = False
    log_retention_days: Retention = 30
    throttle: Throttle
    knowledge: Knowledge | None = Field(None, description="Unset: named when it is deployed.")
    network: Network | None = Field(None, description="Unset: functions are outside of a VPC.")
    servers: Servers | None = None
    operations: Operations = Operations()
    settings: Mapping[str, str] = Field(default_factory=dict, description="Further settings of the functions.")
    token_secret_arn: SecretArn | None = Field(
        None,
        description="An existing secret with the API token as its text. Unset: one is generated.",
    )
    keep_data: bool = Field(description="Whether the secret and the logs outlive the stack.")
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
    def services(self) -> tuple[str, ...]:
        """AWS' services that functions call from inside a network, S3 aside."""
        return ("secretsmanager", "sqs") if isinstance(self.knowledge, Writable) else ("secretsmanager",)

    @property
    def endpoints(self) -> Endpoints:
        """The servers that exist; none, if the deployment creates them or does without."""
        return self.servers if isinstance(self.servers, Endpoints) else Endpoints()

    @property
    def collector_port(self) -> int | None:
        """The port of an OpenTelemetry collector, if the settings name one."""
        found = [port_of(address) for name in ENDPOINTS if (address := self.settings.get(name))]
        return found[0] if found else None

    def changed(self, **fields: object) -> "Environment":
        """The environment with other values, checked as a whole. Raises pydantic's `ValidationError`."""
        return Environment.model_validate({**self.model_dump(), **fields})
