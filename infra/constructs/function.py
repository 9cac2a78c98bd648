"""A function of cragside: a handler of a few lines, with everything else in layers."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from aws_cdk import Duration
from aws_cdk.aws_iam import PolicyStatement, Role, ServicePrincipal
from aws_cdk.aws_lambda import Alias, Code, Function, ILayerVersion, SnapStartConf, Tracing
from aws_cdk.aws_logs import ILogGroup
from constructs import Construct

from infra.constructs.bundling import readable
from infra.constructs.exceptions import acknowledge
from infra.constructs.layers import ARCHITECTURES, RUNTIMES
from infra.constructs.placement import Placement

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


class PythonFunction(Construct):
    """A traced function whose published version is reached through the alias `live`."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        code: Path,
        layers: Sequence[ILayerVersion],
        python: str,
        architecture: str,
        memory_mb: int,
        timeout_seconds: int,
        variables: Mapping[str, str],
        logs: ILogGroup,
        reserved_concurrency: int | None,
        snap_start: bool,
        placement: Placement | None = None,
    ) -> None:
        super().__init__(scope, name)
        # CDK's default role may create and write every log group of the account.
        self.role = Role(self, "Role", assumed_by=ServicePrincipal("lambda.amazonaws.com"))
        logs.grant_write(self.role)
        if placement is not None:
            self.role.add_to_policy(PolicyStatement(actions=_CONNECT, resources=["*"]))
        self.function = Function(
            self,
            "Function",
            code=Code.from_asset(str(code), exclude=["__pycache__"], bundling=readable(code)),
            handler="handler.handler",
            runtime=RUNTIMES[python],
            architecture=ARCHITECTURES[architecture],
            layers=list(layers),
            memory_size=memory_mb,
            timeout=Duration.seconds(timeout_seconds),
            environment=dict(variables),
            log_group=logs,
            role=self.role,
            tracing=Tracing.ACTIVE,
            reserved_concurrent_executions=reserved_concurrency,
            snap_start=SnapStartConf.ON_PUBLISHED_VERSIONS if snap_start else None,
            vpc=placement.vpc if placement else None,
            vpc_subnets=placement.subnets if placement else None,
            security_groups=list(placement.security_groups) if placement else None,
        )
        self.live = Alias(self, "Live", alias_name="live", version=self.function.current_version)
        for rule in ("AwsSolutions::AwsSolutions-L1", "Serverless::Serverless-LambdaLatestVersion"):
            newest = f"Python {python} is chosen: the newest that every dependency is tested on here is 3.13."
            acknowledge(self.function, rule, newest)
        acknowledge(
            self.function,
            "Serverless::Serverless-LambdaDLQ",
            "Nothing calls it asynchronously but a schedule, whose next event makes up for a lost one.",
        )
        acknowledge(
            self.role,
            "AwsSolutions::AwsSolutions-IAM5[Resource::*]",
            "X-Ray's PutTraceSegments and PutTelemetryRecords know no resources, and interfaces in a VPC get their ids "
            "later.",
        )
        if snap_start:
            acknowledge(
                self.function,
                "Annotation::@aws-cdk/aws-lambda:snapStartRequirePublish",
                "The alias above publishes a version with every change of the function.",
            )
