"""The network: a VPC of its own with endpoints of AWS' services, or an existing one."""

from aws_cdk import Aws
from aws_cdk import aws_ec2 as ec2
from aws_cdk.aws_iam import AnyPrincipal, PolicyStatement
from constructs import Construct

from infra.config import Environment, ImportedNetwork, NewNetwork
from infra.function import Placement
from infra.stack import EnvironmentStack

_FUNCTIONS, _ISOLATED = "functions", ec2.SubnetType.PRIVATE_ISOLATED


class NetworkStack(EnvironmentStack):
    """`functions` is their place. With an existing VPC, the stack is empty, and the CDK skips it."""

    def __init__(self, scope: Construct, environment: Environment, network: NewNetwork | ImportedNetwork) -> None:
        super().__init__(scope, "network", environment, f"the network ({environment.name})")
        if isinstance(network, ImportedNetwork):
            self.functions = self._imported(network)
        else:
            self.functions = self._new(network, environment)

    def _imported(self, network: ImportedNetwork) -> Placement:
        vpc = ec2.Vpc.from_vpc_attributes(
            self,
            "Vpc",
            vpc_id=network.vpc_id,
            vpc_cidr_block=network.cidr,
            availability_zones=list(network.zones),
            isolated_subnet_ids=list(network.subnet_ids),
        )
        group = ec2.SecurityGroup.from_security_group_id(self, "Functions", network.security_group_id, mutable=False)
        return Placement(vpc, ec2.SubnetSelection(subnet_type=_ISOLATED), group)

    def _new(self, network: NewNetwork, environment: Environment) -> Placement:
        # Its name has the range. Another range makes another VPC, and functions that refer to it by its old name would
        # not be updated.
        name = "Vpc" + network.cidr.replace(".", "x").replace("/", "x")
        vpc = ec2.Vpc(
            self,
            name,
            ip_addresses=ec2.IpAddresses.cidr(network.cidr),
            max_azs=2,
            nat_gateways=0,
            subnet_configuration=[
                ec2.SubnetConfiguration(name=_FUNCTIONS, subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
            ],
        )
        vpc.add_flow_log("Flows", destination=ec2.FlowLogDestination.to_cloud_watch_logs(self.log_group("FlowLogs")))
        inside = ec2.SubnetSelection(subnet_group_name=_FUNCTIONS)
        functions = _group(self, f"{name}Functions", vpc, "cragside: functions")
        endpoints = self._endpoints(f"{name}Endpoints", vpc, inside, environment.services)
        functions.add_egress_rule(
            ec2.Peer.security_group_id(endpoints.security_group_id), ec2.Port.tcp(443), "AWS' endpoints"
        )
        endpoints.add_ingress_rule(functions, ec2.Port.tcp(443), "callers in the network")
        if network.s3_prefix_list_id is not None:
            s3 = ec2.Peer.prefix_list(network.s3_prefix_list_id)
            functions.add_egress_rule(s3, ec2.Port.tcp(443), "S3, by its gateway endpoint")
        collector = environment.collector_port
        for cidr in environment.servers.cidrs or (network.cidr,):
            for port in sorted(environment.servers.ports | ({collector} if collector else set())):
                functions.add_egress_rule(ec2.Peer.ipv4(cidr), ec2.Port.tcp(port), "a server")
        return Placement(vpc, inside, functions)

    def _endpoints(
        self, name: str, vpc: ec2.Vpc, subnets: ec2.SubnetSelection, services: list[str]
    ) -> ec2.SecurityGroup:
        """S3 by a gateway, which costs nothing, and the named services by interfaces, in these subnets."""
        gateway = vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3, subnets=[subnets])
        gateway.add_to_policy(_for_this_account())
        within = Construct(self, name)
        group = _group(within, "Group", vpc, "cragside: endpoints of AWS")
        for service in services:
            endpoint = ec2.InterfaceVpcEndpoint(
                within,
                service,
                vpc=vpc,
                subnets=subnets,
                service=ec2.InterfaceVpcEndpointAwsService(service),
                security_groups=[group],
                open=False,
            )
            endpoint.add_to_policy(_for_this_account())
        return group


def _group(scope: Construct, name: str, vpc: ec2.Vpc, description: str) -> ec2.SecurityGroup:
    return ec2.SecurityGroup(scope, name, vpc=vpc, description=description, allow_all_outbound=False)


def _for_this_account() -> PolicyStatement:
    """Keys of another account would carry data out through an endpoint that serves everybody."""
    return PolicyStatement(
        principals=[AnyPrincipal()],
        actions=["*"],
        resources=["*"],
        conditions={"StringEquals": {"aws:PrincipalAccount": Aws.ACCOUNT_ID}},
    )
