"""What all models of an environment share."""

from ipaddress import IPv4Network
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints


class Data(BaseModel):
    """Frozen, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


SecretArn = Annotated[
    str,
    StringConstraints(
        pattern=r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[A-Za-z0-9/_+=.@-]+-[A-Za-z0-9]{6}$"
    ),
]
_UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
KeyArn = Annotated[
    str, StringConstraints(pattern=rf"^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{{12}}:key/(mrk-[0-9a-f]{{32}}|{_UUID})$")
]
CertificateArn = Annotated[
    str, StringConstraints(pattern=rf"^arn:aws[a-z-]*:acm:[a-z0-9-]+:\d{{12}}:certificate/{_UUID}$")
]


def _range(said: str) -> str:
    if "/" not in said:
        raise ValueError(f"{said!r} has no /BITS")
    IPv4Network(said)  # its error says what is wrong, such as bits after the mask
    return said


Cidr = Annotated[str, AfterValidator(_range)]
