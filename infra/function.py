"""A function of cragside: a handler of a few lines, with everything else in layers."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsii
from aws_cdk import BundlingOptions, DockerImage, Duration, ILocalBundling, RemovalPolicy, Size
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_ec2 import ISecurityGroup, IVpc, SubnetSelection
from aws_cdk.aws_iam import Effect, Policy, PolicyStatement, Role, ServicePrincipal
from constructs import Construct

from infra.config import LEAST_TMP_MB, Environment
from infra.stack import EnvironmentStack, acknowledge

_RUNTIMES = {
    "3.11": lambda_.Runtime.PYTHON_3_11,
    "3.12": lambda_.Runtime.PYTHON_3_12,
    "3.13": lambda_.Runtime.PYTHON_3_13,
}
_ARCHITECTURES = {"x86_64": lambda_.Architecture.X86_64, "arm64": lambda_.Architecture.ARM_64}
# What Lambda does with a function's role to connect it to a VPC. Descriptions know no resources. Interfaces do, but
# they get their ids later, and AWS' own policy for this, AWSLambdaVPCAccessExecutionRole, names none either.
_CONNECT = [
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
]


def readable(folder: Path, into: str = ".") -> BundlingOptions:
    """Bundle the folder as `into`, readable for all: Lambda is another user, and the zip keeps the files' modes."""
    # CDK requires an image in case the local bundling declines, which it never does.
    return BundlingOptions(image=DockerImage.from_registry("unused"), local=_Readable(folder, into))


@jsii.implements(ILocalBundling)
class _Readable:
    def __init__(self, folder: Path, into: str) -> None:
        self._folder = folder
        self._into = into

    def try_bundle(self, output_dir: str, *_: Any, **__: Any) -> bool:
        target = Path(output_dir) / self._into
        shutil.copytree(self._folder, target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        for path in (target, *target.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        return True


@dataclass(frozen=True, slots=True)
class Placement:
    """Subnets of a VPC, and the security group of what is placed there."""

    vpc: IVpc
    subnets: SubnetSelection
    group: ISecurityGroup


def layers_of(scope: Construct, environment: Environment, folders: Mapping[str, Path]) -> list[lambda_.LayerVersion]:
    """Make a layer for each named folder, which becomes /opt."""
    within = Construct(scope, "Layers")
    return [
        lambda_.LayerVersion(
            within,
            name,
            code=lambda_.Code.from_asset(str(folder)),
            description=f"cragside: {name}",
            compatible_runtimes=[_RUNTIMES[environment.python]],
            compatible_architectures=[_ARCHITECTURES[environment.architecture]],
        )
        for name, folder in folders.items()
    ]


class PythonFunction(Construct):
    """A function whose published version is reached through the alias `live`. Earlier versions stay, for a rollback.

    It is told of the environment's servers and settings, and may read the servers' secrets. `variables` go before them.
    """

    def __init__(
        self,
        stack: EnvironmentStack,
        name: str,
        *,
        code: Path,
        layers: Sequence[lambda_.ILayerVersion],
        memory_mb: int,
        timeout_seconds: int,
        variables: Mapping[str, str],
        placement: Placement | None,
        tmp_mb: int = LEAST_TMP_MB,
        reserved_concurrency: int | None = None,
        snap_start: bool = False,
    ) -> None:
        super().__init__(stack, name)
        environment, logs = stack.environment_config, stack.log_group(f"{name}Logs")
        servers = environment.servers
        # CDK's default role may create and write every log group of the account.
        self.role = Role(self, "Role", assumed_by=ServicePrincipal("lambda.amazonaws.com"))
        logs.grant_write(self.role)
        if placement is not None:
            self.role.add_to_policy(PolicyStatement(actions=_CONNECT, resources=["*"]))
        # Without them, the function sends no metrics that somebody would pay for.
        measuring = {} if environment.observability == "full" else {"POWERTOOLS_METRICS_DISABLED": "true"}
        self.function = lambda_.Function(
            self,
            "Function",
            code=lambda_.Code.from_asset(str(code), exclude=["__pycache__"], bundling=readable(code)),
            handler="handler.handler",
            runtime=_RUNTIMES[environment.python],
            architecture=_ARCHITECTURES[environment.architecture],
            layers=list(layers),
            memory_size=memory_mb,
            ephemeral_storage_size=Size.mebibytes(tmp_mb) if tmp_mb > LEAST_TMP_MB else None,
            timeout=Duration.seconds(timeout_seconds),
            environment={**environment.settings, **servers.variables, **variables, **measuring},
            log_group=logs,
            role=self.role,
            tracing=lambda_.Tracing.ACTIVE if environment.xray else lambda_.Tracing.DISABLED,
            reserved_concurrent_executions=reserved_concurrency,
            snap_start=lambda_.SnapStartConf.ON_PUBLISHED_VERSIONS if snap_start else None,
            vpc=placement.vpc if placement else None,
            vpc_subnets=placement.subnets if placement else None,
            security_groups=[placement.group] if placement else None,
            current_version_options=lambda_.VersionOptions(removal_policy=RemovalPolicy.RETAIN),
        )
        self.allow(["secretsmanager:GetSecretValue"], servers.secret_arns)
        self.allow(["rds-db:connect"], [servers.postgres_user_arn] if servers.postgres_user_arn else [])
        self.live = lambda_.Alias(self, "Live", alias_name="live", version=self.function.current_version)
        if placement is not None:
            self._keep_from_code(_CONNECT)
        self._explain(environment, snap_start)

    def allow(self, actions: Sequence[str], resources: Sequence[str]) -> None:
        """Let the function do this with these resources, if there are any."""
        if resources:
            self.role.add_to_policy(PolicyStatement(actions=list(actions), resources=list(resources)))

    def _keep_from_code(self, actions: Sequence[str]) -> None:
        """Deny to what runs in the function what Lambda alone does with its role."""
        denied = PolicyStatement(
            effect=Effect.DENY,
            actions=list(actions),
            resources=["*"],
            conditions={"ArnEquals": {"lambda:SourceFunctionArn": [self.function.function_arn]}},
        )
        # A policy of its own: the role's default one has to be there before the function that this one names.
        Policy(self, "OfLambdaAlone", roles=[self.role], statements=[denied])

    def _explain(self, environment: Environment, snap_start: bool) -> None:
        newest = f"Python {environment.python} is chosen: the newest that every dependency is tested on here is 3.13."
        reasons = {
            "AwsSolutions::AwsSolutions-L1": newest,
            "Serverless::Serverless-LambdaLatestVersion": newest,
            "Serverless::Serverless-LambdaDLQ": "Nothing calls it asynchronously but a schedule, whose next event "
            "makes up for a lost one.",
        }
        if not environment.xray:
            reasons["Serverless::Serverless-LambdaTracing"] = (
                "The environment says xray = false, because each sampled request is billed as a trace."
            )
        if snap_start:
            reasons["Annotation::@aws-cdk/aws-lambda:snapStartRequirePublish"] = (
                "The alias above publishes a version with every change of the function."
            )
        for rule, reason in reasons.items():
            acknowledge(self.function, rule, reason)
        acknowledge(
            self.role,
            "AwsSolutions::AwsSolutions-IAM5[Resource::*]",
            "X-Ray's PutTraceSegments and PutTelemetryRecords know no resources, and interfaces in a VPC get their ids "
            "later.",
        )
