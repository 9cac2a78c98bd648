"""Base of the models of an environment."""

from ipaddress import IPv4Network
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

from infra.environments.forms import form, unfit


class Data(BaseModel):
    """Frozen, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


SecretArn = Annotated[
    str,
    form(
        r"arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[A-Za-z0-9/_+=.@-]+-[A-Za-z0-9]{6}",
        "the ARN of a secret: arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME-SUFFIX",
    ),
]
_UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
KeyArn = Annotated[
    str,
    form(
        rf"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{{12}}:key/(mrk-[0-9a-f]{{32}}|{_UUID})",
        "the ARN of a key: arn:aws:kms:REGION:ACCOUNT:key/ID",
    ),
]
CertificateArn = Annotated[
    str,
    form(
        rf"arn:aws[a-z-]*:acm:[a-z0-9-]+:\d{{12}}:certificate/{_UUID}",
        "the ARN of a certificate: arn:aws:acm:REGION:ACCOUNT:certificate/ID",
    ),
]


def _range(cidr: str) -> str:
    try:
        if "/" not in cidr or not IPv4Network(cidr):
            raise ValueError
    except ValueError as error:
        raise unfit("a range of addresses, such as 10.1.0.0/16") from error
    return cidr


Cidr = Annotated[str, AfterValidator(_range)]
