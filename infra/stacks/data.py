"""The servers of the self-hosted shape: databases, Ollama on a graphics card, SearXNG."""

from pathlib import Path

import aws_cdk as cdk
from aws_cdk.aws_ec2 import CfnSecurityGroupEgress, Peer, Port, SecurityGroup, SubnetSelection
from aws_cdk.aws_route53 import PrivateHostedZone
from aws_cdk.aws_s3_assets import Asset
from aws_cdk.aws_secretsmanager import Secret, SecretStringGenerator
from constructs import Construct

from infra.constructs.exceptions import acknowledge
from infra.constructs.host import Host, HostFiles
from infra.constructs.kept_volume import KeptVolume
from infra.constructs.key_use import let_use
from infra.constructs.network import Network
from infra.constructs.placement import Placement
from infra.constructs.servers import Servers
from infra.environments.model import Environment
from infra.environments.servers import SelfHosted
from infra.stacks.base import EnvironmentStack

_PROXY_PORT = 3128
_EXIT_WITHOUT_SEARCH = "t4g.small"


class DataStack(EnvironmentStack):
    """`servers` is what functions are told. Hosts have no way in; SearXNG's host is their only way out."""

    def __init__(
        self, scope: Construct, name: str, *, environment: Environment, hosted: SelfHosted, network: Network, root: Path
    ) -> None:
        super().__init__(scope, name, environment, f"databases, models and search ({environment.name})")
        self._network = network
        self._files = HostFiles(
            packaging=Asset(
                self, "Packaging", path=str(root / "packaging"), exclude=["*.service", "aws", "__pycache__"]
            ),
            compose=Asset(self, "Compose", path=str(root / "docker-compose.local.yml")),
        )
        self._domain = f"{environment.name}.cragside.internal"
        self._zone = PrivateHostedZone(self, "Zone", zone_name=self._domain, vpc=network.servers.vpc)
        self._variables = {
            "ZONE": self._domain,
            "ZONE_ID": self._zone.hosted_zone_id,
            "CIDR": network.servers.vpc.vpc_cidr_block,
        }
        postgres, neo4j = self._secret("Postgres"), self._secret("Neo4j") if hosted.neo4j else None
        exit_host = self._exit(hosted)
        data = self._data(hosted, postgres, neo4j)
        hosts = [data, self._ollama(hosted, hosted.ollama_instance)] if hosted.ollama_instance else [data]
        for host in hosts:
            host.group.node.add_dependency(exit_host.group)
        self.servers = self._servers(hosted, postgres, neo4j)

    def _exit(self, hosted: SelfHosted) -> Host:
        inside, exits = self._network.servers, self._network.exits
        if exits is None:
            raise ValueError("a network for servers has public subnets for the one that searches")
        group = SecurityGroup(
            self, "ExitGroup", vpc=inside.vpc, description="cragside: the way out", allow_all_outbound=False
        )
        for port in (80, 443):
            group.add_egress_rule(Peer.any_ipv4(), Port.tcp(port), "search engines, images, models, AWS")
        for number, servers in enumerate(inside.security_groups):
            group.add_ingress_rule(servers, Port.tcp(_PROXY_PORT), "hosts without a way out")
            # Beside the group, whose stack would need this one otherwise.
            CfnSecurityGroupEgress(
                self,
                f"ToExit{number}",
                group_id=servers.security_group_id,
                ip_protocol="tcp",
                from_port=_PROXY_PORT,
                to_port=_PROXY_PORT,
                destination_security_group_id=group.security_group_id,
                description="the way out",
            )
        services = "searxng" if hosted.searxng_instance else ""
        return self._host(
            "Exit",
            Placement(inside.vpc, exits, (*inside.security_groups, group)),
            hosted.searxng_instance or _EXIT_WITHOUT_SEARCH,
            names=("exit", "searxng"),
            public=True,
            variables={"ROLE": "exit", "SERVICES": services},
        )

    def _data(self, hosted: SelfHosted, postgres: Secret, neo4j: Secret | None) -> Host:
        inside = self._network.servers
        first = inside.vpc.select_subnets(
            subnet_type=inside.subnets.subnet_type, subnet_group_name=inside.subnets.subnet_group_name
        ).subnets[0]
        volume = KeptVolume(
            self,
            "Kept",
            zone=first.availability_zone,
            gigabytes=hosted.data_volume_gb,
            days=hosted.backup_days,
            keep=self._environment.keep_data,
            key=self._key,
        )
        host = self._host(
            "Data",
            # In the volume's zone.
            Placement(inside.vpc, SubnetSelection(subnets=[first]), inside.security_groups),
            hosted.data_instance,
            names=("postgres", "neo4j"),
            variables={
                "ROLE": "data",
                "SERVICES": "postgres neo4j" if neo4j else "postgres",
                "CONNECTIONS": str(hosted.postgres_connections),
                "VOLUME_ID": volume.volume_id,
                "POSTGRES_URI_SECRET": postgres.secret_arn,
                **({"NEO4J_PASSWORD_SECRET": neo4j.secret_arn} if neo4j else {}),
            },
        )
        volume.let_attach(host)
        for secret in (postgres, neo4j):
            if secret is not None:
                secret.grant_read(host.role)
        host.allow(["secretsmanager:PutSecretValue"], [postgres.secret_arn])
        if self._key is not None:
            let_use(host.role, self._key, ["kms:Decrypt", "kms:GenerateDataKey"], through=["secretsmanager"])
        return host

    def _ollama(self, hosted: SelfHosted, instance: str) -> Host:
        variables = {"ROLE": "ollama", "SERVICES": "ollama-gpu", "MODELS": "yes"}
        return self._host(
            "Ollama",
            self._network.servers,
            instance,
            names=("ollama",),
            gpu=True,
            root_gb=hosted.ollama_volume_gb,
            variables=variables,
        )

    def _host(
        self,
        name: str,
        placement: Placement,
        instance: str,
        *,
        names: tuple[str, ...],
        variables: dict[str, str],
        public: bool = False,
        gpu: bool = False,
        root_gb: int = 30,
    ) -> Host:
        host = Host(
            self,
            name,
            placement=placement,
            instance=instance,
            root_gb=root_gb,
            gpu=gpu,
            public=public,
            files=self._files,
            variables={**self._variables, **variables},
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
            removal_policy=cdk.RemovalPolicy.RETAIN if self._environment.keep_data else cdk.RemovalPolicy.DESTROY,
        )
        acknowledge(
            secret,
            "AwsSolutions::AwsSolutions-SMG4",
            "The server holds the password too, and is told of a new one by hand.",
        )
        return secret

    def _servers(self, hosted: SelfHosted, postgres: Secret, neo4j: Secret | None) -> Servers:
        variables = {"POSTGRES_URI_SECRET": postgres.secret_arn}
        if neo4j is not None:
            # One server: `neo4j://` would lead to the address that it has in its container.
            variables |= {"NEO4J_URI": f"bolt://neo4j.{self._domain}:7687", "NEO4J_USERNAME": "neo4j"}
            variables |= {"NEO4J_PASSWORD_SECRET": neo4j.secret_arn}
        else:
            variables |= {"RAG_GRAPH_STORAGE": "PGGraphStorage"}
        if hosted.ollama_instance:
            variables |= {"OLLAMA_BASE_URL": f"http://ollama.{self._domain}:11434"}
        if hosted.searxng_instance:
            variables |= {"SEARXNG_HOST": f"http://searxng.{self._domain}:8080"}
        arns = [secret.secret_arn for secret in (postgres, neo4j) if secret is not None]
        return Servers(variables, tuple(arns))
