"""Place of a function or a server in a network."""

from dataclasses import dataclass

from aws_cdk.aws_ec2 import ISecurityGroup, IVpc, SubnetSelection


@dataclass(frozen=True, slots=True)
class Placement:
    """Subnets of a VPC, and the security groups of what is placed there."""

    vpc: IVpc
    subnets: SubnetSelection
    security_groups: tuple[ISecurityGroup, ...]
