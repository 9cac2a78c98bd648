"""The network of functions and servers: a new VPC or an existing one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aws_cdk.aws_ec2 import (
    FlowLogDestination,
    IpAddresses,
    IVpc,
    Peer,
    Port,
    SecurityGroup,
    SubnetConfiguration,
    SubnetSelection,
    SubnetType,
    Vpc,
)
from aws_cdk.aws_logs import ILogGroup
from constructs import Construct

from infra.constructs.endpoints import Endpoints
from infra.constructs.placement import Placement

_FUNCTIONS, _SERVERS, _EXITS = "functions", "servers", "exits"


@dataclass(frozen=True, slots=True)
class Network:
    """Places for functions and servers, and the public subnets for what needs a way out, if there are any."""

    functions: Placement
    servers: Placement
    exits: SubnetSelection | None = None


def new_network(
    scope: Construct,
    name: str,
    *,
    cidr: str,
    logs: ILogGroup,
    services: Iterable[str],
    prefix_list: str | None,
    exits: bool,
) -> Network:
    """Two zones without a way out for functions and servers, with endpoints of the named AWS services and of S3."""
    vpc = Vpc(
        scope,
        name,
        ip_addresses=IpAddresses.cidr(cidr),
        max_azs=2,
        nat_gateways=0,
        subnet_configuration=_subnets(exits),
    )
    vpc.add_flow_log("Flows", destination=FlowLogDestination.to_cloud_watch_logs(logs))
    functions = _group(scope, "Functions", vpc, "cragside: functions")
    servers = _group(scope, "Servers", vpc, "cragside: servers of its own")
    inside = SubnetSelection(subnet_group_name=_FUNCTIONS)
    endpoints = Endpoints(scope, "Endpoints", vpc=vpc, subnets=inside, services=services)
    endpoints.open_to(functions)
    if exits:
        # The names of AWS' services lead to the endpoints, for hosts of servers as well.
        endpoints.open_to(servers)
    if prefix_list is not None:
        functions.add_egress_rule(Peer.prefix_list(prefix_list), Port.tcp(443), "S3, by its gateway endpoint")
    return Network(
        Placement(vpc, inside, (functions,)),
        Placement(vpc, SubnetSelection(subnet_group_name=_SERVERS), (servers,)),
        SubnetSelection(subnet_group_name=_EXITS) if exits else None,
    )


def imported_network(
    scope: Construct,
    name: str,
    *,
    vpc_id: str,
    cidr: str,
    zones: Sequence[str],
    subnet_ids: Sequence[str],
    exit_subnet_ids: Sequence[str],
    security_group_id: str,
    servers: bool,
) -> Network:
    """An existing VPC, in which nothing is changed. With `servers`, it gets a security group for them."""
    vpc = Vpc.from_vpc_attributes(
        scope,
        name,
        vpc_id=vpc_id,
        vpc_cidr_block=cidr,
        availability_zones=list(zones),
        isolated_subnet_ids=list(subnet_ids),
        public_subnet_ids=list(exit_subnet_ids) or None,
    )
    functions = SecurityGroup.from_security_group_id(scope, "Functions", security_group_id, mutable=False)
    groups = (_group(scope, "Servers", vpc, "cragside: servers of its own"),) if servers else ()
    inside = SubnetSelection(subnet_type=SubnetType.PRIVATE_ISOLATED)
    exits = SubnetSelection(subnet_type=SubnetType.PUBLIC) if exit_subnet_ids else None
    return Network(Placement(vpc, inside, (functions,)), Placement(vpc, inside, groups), exits)


def open_ranges(functions: Placement, cidrs: Iterable[str], ports: Iterable[int]) -> None:
    """Let functions reach these ports at these addresses."""
    for group in functions.security_groups:
        for cidr in cidrs:
            for port in sorted(ports):
                group.add_egress_rule(Peer.ipv4(cidr), Port.tcp(port), "a server")


def open_servers(functions: Placement, servers: Placement, ports: Iterable[int]) -> None:
    """Let functions reach these ports of the servers."""
    for caller in functions.security_groups:
        for group in servers.security_groups:
            for port in sorted(ports):
                # One direction by the group's id: CloudFormation would find a circle otherwise.
                caller.add_egress_rule(Peer.security_group_id(group.security_group_id), Port.tcp(port), "a server")
                group.add_ingress_rule(caller, Port.tcp(port), "functions")


def _group(scope: Construct, name: str, vpc: IVpc, description: str) -> SecurityGroup:
    return SecurityGroup(scope, name, vpc=vpc, description=description, allow_all_outbound=False)


def _subnets(exits: bool) -> list[SubnetConfiguration]:
    isolated = [
        SubnetConfiguration(name=name, subnet_type=SubnetType.PRIVATE_ISOLATED) for name in (_FUNCTIONS, _SERVERS)
    ]
    public = SubnetConfiguration(name=_EXITS, subnet_type=SubnetType.PUBLIC, map_public_ip_on_launch=False)
    return [*isolated, *([public] if exits else [])]
