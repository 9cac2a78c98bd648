"""The CDK app of the hosts. It has never been deployed.

cdk deploy --app "python -m examples.hosts_on_aws.app" -c file=examples/hosts_on_aws/hosts.toml
"""

import tomllib
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import aws_cdk as cdk
from aws_cdk import Aws, RemovalPolicy, Size, Tags
from aws_cdk.aws_dlm import CfnLifecyclePolicy
from aws_cdk.aws_ec2 import (
    CfnSecurityGroupEgress,
    EbsDeviceVolumeType,
    Peer,
    Port,
    SecurityGroup,
    SubnetSelection,
    SubnetType,
    Volume,
    Vpc,
)
from aws_cdk.aws_iam import PolicyStatement, Role, ServicePrincipal
from aws_cdk.aws_kms import IKey, Key
from aws_cdk.aws_route53 import PrivateHostedZone
from aws_cdk.aws_s3_assets import Asset
from aws_cdk.aws_secretsmanager import Secret, SecretStringGenerator
from constructs import Construct
from pydantic import Field

from examples.hosts_on_aws.host import Host, HostFiles, Place
from infra.app import new_app
from infra.fields import Cidr, Data, KeyArn, form, resource_id
from infra.stack import acknowledge

ROOT = Path(__file__).parents[2]
_PROXY_PORT = 3128
_TAG = "cragside:snapshots"
_Instance = Annotated[str, form(r"[a-z][a-z0-9-]*\d[a-z0-9-]*\.[a-z0-9-]+", "a type of an instance, such as r7g.large")]
# The image with drivers for graphics cards is for x86: a `g` behind the generation, as in g5g, means ARM.
_GpuInstance = Annotated[
    str, form(r"[a-z]+\d+[a-fh-z]*\.[a-z0-9-]+", "a type of an instance with an x86 processor, such as g5.xlarge")
]
_Image = Annotated[str, resource_id("ami", "image")]


class Hosts(Data):
    """The network that the hosts are in, and what they are."""

    name: Annotated[str, form(r"[a-z][a-z0-9-]{0,19}", "a name such as prod")]
    account: str
    region: str
    keep_data: bool = False
    kms_key_arn: KeyArn | None = None
    vpc_id: Annotated[str, resource_id("vpc", "VPC")]
    cidr: Cidr
    zones: Annotated[tuple[str, ...], Field(min_length=2)]
    subnet_ids: tuple[str, ...]
    exit_subnet_ids: tuple[str, ...]
    functions_group_id: Annotated[str, resource_id("sg", "security group")]
    data_instance: _Instance
    data_image: _Image
    data_volume_gb: int = Field(100, ge=20, le=16_384)
    backup_days: int = Field(14, ge=1, le=365)
    neo4j: bool = Field(True, description="Whether graphs are in Neo4j; else in PostgreSQL with AGE.")
    postgres_connections: int = Field(200, ge=4)
    exit_instance: _Instance
    exit_image: _Image
    searxng: bool = True
    ollama_instance: _GpuInstance | None = Field(None, description="Unset: no Ollama.")
    ollama_image: _Image | None = None
    ollama_volume_gb: int = Field(100, ge=30, le=16_384)

    @property
    def ports(self) -> list[int]:
        """Return the ports that a function reaches."""
        optional = {7687: self.neo4j, 8080: self.searxng, 11434: self.ollama_instance}
        return [5432, *(port for port, there in optional.items() if there)]


class HostsStack(cdk.Stack):
    """Outputs: what the `servers` of cragside's environment are told. Hosts have no way in; one is their way out."""

    def __init__(self, scope: Construct, hosts: Hosts) -> None:
        super().__init__(
            scope,
            f"cragside-{hosts.name}-hosts",
            env=cdk.Environment(account=hosts.account, region=hosts.region),
            description=f"cragside: databases, models and search ({hosts.name})",
            termination_protection=hosts.keep_data,
        )
        self._hosts = hosts
        self._vpc = Vpc.from_vpc_attributes(
            self,
            "Vpc",
            vpc_id=hosts.vpc_id,
            vpc_cidr_block=hosts.cidr,
            availability_zones=list(hosts.zones),
            isolated_subnet_ids=list(hosts.subnet_ids),
            public_subnet_ids=list(hosts.exit_subnet_ids),
        )
        self._group = self._servers_group()
        self._inside = Place(self._vpc, SubnetSelection(subnet_type=SubnetType.PRIVATE_ISOLATED), (self._group,))
        self._files = HostFiles(
            # Nothing but what hosts run: a change of anything else here would replace them.
            packaging=Asset(self, "Packaging", path=str(ROOT / "packaging"), exclude=["*.service", "aws", "npm"]),
            compose=Asset(self, "Compose", path=str(ROOT / "docker-compose.local.yml")),
        )
        self._domain = f"{hosts.name}.cragside.internal"
        self._zone = PrivateHostedZone(self, "Zone", zone_name=self._domain, vpc=self._vpc)
        postgres, neo4j = self._secret("Postgres"), self._secret("Neo4j") if hosts.neo4j else None
        way_out = self._exit()
        inside = [self._data(postgres, neo4j)]
        if hosts.ollama_instance and hosts.ollama_image:
            inside.append(self._ollama(hosts.ollama_instance, hosts.ollama_image))
        for host in inside:
            host.group.node.add_dependency(way_out.group)
        self._tell(postgres, neo4j)

    @cached_property
    def _key(self) -> IKey | None:
        """Return the operator's key, if there is one."""
        return Key.from_key_arn(self, "Key", self._hosts.kms_key_arn) if self._hosts.kms_key_arn else None

    def _tell(self, postgres: Secret, neo4j: Secret | None) -> None:
        told = {"postgres_uri_secret_arn": postgres.secret_arn}
        if neo4j is not None:
            # One server: `neo4j://` would lead to the address that it has in its container.
            told |= {"neo4j_uri": f"bolt://neo4j.{self._domain}:7687", "neo4j_password_secret_arn": neo4j.secret_arn}
        if self._hosts.ollama_instance:
            told |= {"ollama_url": f"http://ollama.{self._domain}:11434"}
        if self._hosts.searxng:
            told |= {"searxng_url": f"http://searxng.{self._domain}:8080"}
        for field, value in told.items():
            cdk.CfnOutput(self, field.title().replace("_", ""), value=value, description=f"servers.{field}")

    def _servers_group(self) -> SecurityGroup:
        group = SecurityGroup(self, "Servers", vpc=self._vpc, description="cragside: servers", allow_all_outbound=False)
        functions = Peer.security_group_id(self._hosts.functions_group_id)
        for port in self._hosts.ports:
            group.add_ingress_rule(functions, Port.tcp(port), "functions")
            self._egress(f"Functions{port}", self._hosts.functions_group_id, group, port, "a server")
        return group

    def _egress(self, name: str, group_id: str, to: SecurityGroup, port: int, description: str) -> None:
        CfnSecurityGroupEgress(
            self,
            name,
            group_id=group_id,
            ip_protocol="tcp",
            from_port=port,
            to_port=port,
            destination_security_group_id=to.security_group_id,
            description=description,
        )

    def _exit(self) -> Host:
        group = SecurityGroup(
            self, "ExitGroup", vpc=self._vpc, description="cragside: the way out", allow_all_outbound=False
        )
        for port in (80, 443):
            group.add_egress_rule(Peer.any_ipv4(), Port.tcp(port), "search engines, images, models, AWS")
        group.add_ingress_rule(self._group, Port.tcp(_PROXY_PORT), "hosts without a way out")
        self._egress("ToExit", self._group.security_group_id, group, _PROXY_PORT, "the way out")
        return self._host(
            "Exit",
            Place(self._vpc, SubnetSelection(subnet_type=SubnetType.PUBLIC), (self._group, group)),
            self._hosts.exit_instance,
            self._hosts.exit_image,
            names=("exit", "searxng"),
            public=True,
            variables={"ROLE": "exit", "SERVICES": "searxng" if self._hosts.searxng else ""},
        )

    def _data(self, postgres: Secret, neo4j: Secret | None) -> Host:
        hosts, first = self._hosts, self._vpc.isolated_subnets[0]
        volume = self._volume(hosts.zones[0])
        host = self._host(
            "Data",
            Place(self._vpc, SubnetSelection(subnets=[first]), (self._group,)),  # in the volume's zone
            hosts.data_instance,
            hosts.data_image,
            names=("postgres", "neo4j"),
            variables={
                "ROLE": "data",
                "SERVICES": "postgres neo4j" if neo4j else "postgres",
                "CONNECTIONS": str(hosts.postgres_connections),
                "VOLUME_ID": volume.volume_id,
                "POSTGRES_URI_SECRET": postgres.secret_arn,
                **({"NEO4J_PASSWORD_SECRET": neo4j.secret_arn} if neo4j else {}),
            },
        )
        self._let_attach(host, volume)
        for secret in (postgres, neo4j):
            if secret is not None:
                secret.grant_read(host.role)
        host.allow(["secretsmanager:PutSecretValue"], [postgres.secret_arn])
        self._allow_key(host, ["kms:Decrypt", "kms:GenerateDataKey"], "secretsmanager")
        return host

    def _ollama(self, instance: str, image: str) -> Host:
        return self._host(
            "Ollama",
            self._inside,
            instance,
            image,
            names=("ollama",),
            root_gb=self._hosts.ollama_volume_gb,
            variables={"ROLE": "ollama", "SERVICES": "ollama-gpu", "MODELS": "yes"},
        )

    def _host(
        self,
        name: str,
        place: Place,
        instance: str,
        image: str,
        *,
        names: tuple[str, ...],
        variables: dict[str, str],
        public: bool = False,
        root_gb: int = 30,
    ) -> Host:
        zone = {"ZONE": self._domain, "ZONE_ID": self._zone.hosted_zone_id, "CIDR": self._hosts.cidr}
        host = Host(
            self,
            name,
            place=place,
            instance=instance,
            image=image,
            root_gb=root_gb,
            public=public,
            files=self._files,
            variables={**zone, **variables},
            key=self._key,
        )
        host.allow_names(self._zone.hosted_zone_arn, [f"{each}.{self._domain}" for each in names])
        return host

    def _secret(self, name: str) -> Secret:
        secret = Secret(
            self,
            name,
            description=f"cragside: {name}, for hosts and functions of {self._domain}",
            generate_secret_string=SecretStringGenerator(password_length=43, exclude_punctuation=True),
            encryption_key=self._key,
            removal_policy=RemovalPolicy.RETAIN if self._hosts.keep_data else RemovalPolicy.DESTROY,
        )
        acknowledge(
            secret,
            "AwsSolutions::AwsSolutions-SMG4",
            "The server holds the password too, and is told of a new one by hand.",
        )
        return secret

    def _volume(self, zone: str) -> Volume:
        """Make a volume that outlives its host, with a snapshot each night. Deleting the stack makes one too."""
        within = Construct(self, "Databases")
        volume = Volume(
            within,
            "Volume",
            availability_zone=zone,
            size=Size.gibibytes(self._hosts.data_volume_gb),
            volume_type=EbsDeviceVolumeType.GP3,
            encrypted=True,
            encryption_key=self._key,
            removal_policy=RemovalPolicy.RETAIN if self._hosts.keep_data else RemovalPolicy.SNAPSHOT,
        )
        Tags.of(volume).add(_TAG, self.stack_name)
        role = Role(within, "Role", assumed_by=ServicePrincipal("dlm.amazonaws.com"))
        snapshots, volumes = (f"arn:{Aws.PARTITION}:ec2:*::snapshot/*", f"arn:{Aws.PARTITION}:ec2:*:*:volume/*")
        ours = {"StringEquals": {f"aws:ResourceTag/{_TAG}": self.stack_name}}
        creating = {"StringEquals": {"ec2:CreateAction": "CreateSnapshot"}}
        described = ["ec2:DescribeVolumes", "ec2:DescribeSnapshots", "ec2:DescribeInstances"]
        statements: list[tuple[list[str], list[str], dict[str, Any]]] = [
            (["ec2:CreateSnapshot"], [snapshots], {}),
            (["ec2:CreateSnapshot"], [volumes], ours),
            (["ec2:DeleteSnapshot"], [snapshots], ours),
            (["ec2:CreateTags"], [snapshots], creating),
            (described, ["*"], {}),
        ]
        for actions, resources, conditions in statements:
            role.add_to_policy(PolicyStatement(actions=actions, resources=resources, conditions=conditions))
        reason = "Snapshots have no names before they are made, and descriptions know no resources."
        for resource in ("*", "arn:<AWS::Partition>:ec2:*::snapshot/*", "arn:<AWS::Partition>:ec2:*:*:volume/*"):
            acknowledge(role, f"AwsSolutions::AwsSolutions-IAM5[Resource::{resource}]", reason)
        nightly = CfnLifecyclePolicy.ScheduleProperty(
            name="nightly",
            create_rule=CfnLifecyclePolicy.CreateRuleProperty(interval=24, interval_unit="HOURS", times=["03:00"]),
            retain_rule=CfnLifecyclePolicy.RetainRuleProperty(count=self._hosts.backup_days),
            copy_tags=True,
        )
        CfnLifecyclePolicy(
            within,
            "Snapshots",
            description="cragside nightly snapshots",
            execution_role_arn=role.role_arn,
            state="ENABLED",
            policy_details=CfnLifecyclePolicy.PolicyDetailsProperty(
                resource_types=["VOLUME"], target_tags=[{"key": _TAG, "value": self.stack_name}], schedules=[nightly]
            ),
        )
        return volume

    def _let_attach(self, host: Host, volume: Volume) -> None:
        instances = f"arn:{Aws.PARTITION}:ec2:{Aws.REGION}:{Aws.ACCOUNT_ID}:instance/*"
        own = f"arn:{Aws.PARTITION}:ec2:{Aws.REGION}:{Aws.ACCOUNT_ID}:volume/{volume.volume_id}"
        host.allow(["ec2:AttachVolume"], [own, instances])
        # EC2 decrypts what the host reads, by a grant that the one who attaches makes.
        self._allow_key(host, ["kms:CreateGrant"], "ec2", {"Bool": {"kms:GrantIsForAWSResource": "true"}})
        host.allow(["ec2:DescribeVolumes"], ["*"])
        host.explain(
            "arn:<AWS::Partition>:ec2:<AWS::Region>:<AWS::AccountId>:instance/*",
            "The group gives its instance an id after the role is made; the volume is named.",
        )

    def _allow_key(self, host: Host, actions: list[str], service: str, granting: dict[str, Any] | None = None) -> None:
        if self._key is not None:
            through = {"StringEquals": {"kms:ViaService": f"{service}.{Aws.REGION}.amazonaws.com"}}
            statement = PolicyStatement(
                actions=actions, resources=[self._key.key_arn], conditions={**(granting or {}), **through}
            )
            host.role.add_to_policy(statement)


def main() -> None:
    """Synthesise the hosts of the file that the context names."""
    app = new_app()
    file = Path(app.node.get_context("file"))
    HostsStack(app, Hosts.model_validate(tomllib.loads(file.read_text(encoding="utf-8"))))
    app.synth()


if __name__ == "__main__":
    main()
