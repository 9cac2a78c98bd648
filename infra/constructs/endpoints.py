"""AWS' services inside a network."""

from collections.abc import Iterable

from aws_cdk import Aws
from aws_cdk.aws_ec2 import (
    GatewayVpcEndpointAwsService,
    InterfaceVpcEndpoint,
    InterfaceVpcEndpointAwsService,
    ISecurityGroup,
    IVpc,
    Peer,
    Port,
    SecurityGroup,
    SubnetSelection,
)
from aws_cdk.aws_iam import AnyPrincipal, PolicyStatement
from constructs import Construct


class Endpoints(Construct):
    """S3 by a gateway, which costs nothing, and the named services by interfaces, in these subnets.

    All serve callers of this account alone.
    """

    def __init__(
        self, scope: Construct, name: str, *, vpc: IVpc, subnets: SubnetSelection, services: Iterable[str]
    ) -> None:
        super().__init__(scope, name)
        gateway = vpc.add_gateway_endpoint("S3", service=GatewayVpcEndpointAwsService.S3, subnets=[subnets])
        gateway.add_to_policy(_of_this_account())
        described = "cragside: endpoints of AWS"
        self.group = SecurityGroup(self, "Group", vpc=vpc, description=described, allow_all_outbound=False)
        for service in services:
            endpoint = InterfaceVpcEndpoint(
                self,
                service,
                vpc=vpc,
                subnets=subnets,
                service=InterfaceVpcEndpointAwsService(service),
                security_groups=[self.group],
                open=False,
            )
            endpoint.add_to_policy(_of_this_account())

    def open_to(self, caller: ISecurityGroup) -> None:
        """Let members of a group reach the interfaces."""
        caller.add_egress_rule(Peer.security_group_id(self.group.security_group_id), Port.tcp(443), "AWS' endpoints")
        self.group.add_ingress_rule(caller, Port.tcp(443), "callers in the network")


def _of_this_account() -> PolicyStatement:
    """Keys of another account would carry data out through an endpoint that serves everybody."""
    return PolicyStatement(
        principals=[AnyPrincipal()],
        actions=["*"],
        resources=["*"],
        conditions={"StringEquals": {"aws:PrincipalAccount": Aws.ACCOUNT_ID}},
    )
