"""Operation of a deployment: its callers, its alarms, its changes."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from infra.environments.base import CertificateArn, Data, KeyArn
from infra.environments.forms import form
from infra.environments.kinds import kind, one_of

TopicArn = Annotated[
    str,
    form(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]+", "the ARN of a topic: arn:aws:sns:REGION:ACCOUNT:NAME"),
]


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
