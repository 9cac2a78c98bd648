"""Network in which functions and servers reach each other."""

from ipaddress import IPv4Network
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from infra.environments.base import Cidr, Data
from infra.environments.forms import form
from infra.environments.kinds import kind, one_of


def _id(prefix: str, what: str) -> AfterValidator:
    return form(rf"{prefix}-[0-9a-f]{{8,17}}", f"the id of a {what}, such as {prefix}-0123456789abcdef0")


class NewNetwork(Data):
    """A VPC that the deployment creates: two zones, with subnets that have no way out for the functions."""

    cidr: Cidr = Field("10.64.0.0/20", description="Its addresses, /16 to /24.")
    s3_prefix_list_id: Annotated[str, _id("pl", "prefix list")] | None = Field(
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

    vpc_id: Annotated[str, _id("vpc", "VPC")]
    cidr: Cidr
    zones: Annotated[tuple[str, ...], Field(min_length=2)]
    subnet_ids: Annotated[tuple[str, ...], Field(min_length=2)] = Field(
        description="The functions' and the servers' subnets, one in each zone, in the order of `zones`."
    )
    exit_subnet_ids: tuple[str, ...] = Field((), description="Public subnets, in the order of `zones`: for SearXNG.")
    security_group_id: Annotated[str, _id("sg", "security group")] = Field(description="The functions' group.")

    @model_validator(mode="after")
    def _subnets(self) -> Self:
        if len(self.subnet_ids) != len(self.zones) or len(self.exit_subnet_ids) not in (0, len(self.zones)):
            raise ValueError("subnet_ids and exit_subnet_ids have one subnet for each of zones")
        for name, ids in (("zones", self.zones), ("subnets", (*self.subnet_ids, *self.exit_subnet_ids))):
            if twice := sorted({each for each in ids if ids.count(each) > 1}):
                raise ValueError(f"{name} that are named twice: {', '.join(twice)}")
        return self


Network = Annotated[
    Annotated[NewNetwork, kind("NewNetwork")] | Annotated[ImportedNetwork, kind("ImportedNetwork")],
    one_of(NewNetwork, ImportedNetwork),
]
