"""A host of servers: a group of one instance, which is replaced when it fails or its definition changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from aws_cdk import Duration, Stack, Tags
from aws_cdk.aws_autoscaling import AutoScalingGroup, CfnAutoScalingGroup, Signals, UpdatePolicy
from aws_cdk.aws_ec2 import (
    BlockDevice,
    BlockDeviceVolume,
    EbsDeviceVolumeType,
    InstanceType,
    ISecurityGroup,
    IVpc,
    LaunchTemplate,
    MachineImage,
    SubnetSelection,
    UserData,
)
from aws_cdk.aws_iam import PolicyStatement, Role, ServicePrincipal
from aws_cdk.aws_kms import IKey
from aws_cdk.aws_s3_assets import Asset
from constructs import Construct

from infra.stack import acknowledge

_STARTING = Duration.minutes(30)


@dataclass(frozen=True, slots=True)
class Place:
    """Subnets of a VPC, and the security groups of what is placed there."""

    vpc: IVpc
    subnets: SubnetSelection
    groups: tuple[ISecurityGroup, ...]


@dataclass(frozen=True, slots=True)
class HostFiles:
    """Files that a host runs: parts of packaging/ as an archive, and the compose file."""

    packaging: Asset
    compose: Asset


class Host(Construct):
    """Has no key and no SSH: sessions are opened by Systems Manager. Its role is `role`.

    `key` encrypts its disk; AWS' own key does without one.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        place: Place,
        instance: str,
        image: str,
        root_gb: int,
        public: bool,
        files: HostFiles,
        variables: Mapping[str, str],
        key: IKey | None,
    ) -> None:
        super().__init__(scope, name)
        first, *others = place.groups
        stack = Stack.of(self)
        self.role = Role(self, "Role", assumed_by=ServicePrincipal("ec2.amazonaws.com"))
        self._allow_sessions()
        self._script = UserData.for_linux()
        self.template = LaunchTemplate(
            self,
            "Template",
            instance_type=InstanceType(instance),
            machine_image=MachineImage.generic_linux({stack.region: image}, user_data=self._script),
            role=self.role,
            security_group=first,
            associate_public_ip_address=public,
            user_data=self._script,
            require_imdsv2=True,
            # Containers are one hop further, and get no credentials.
            http_put_response_hop_limit=1,
            detailed_monitoring=True,
            block_devices=[
                BlockDevice(
                    device_name="/dev/xvda",
                    volume=BlockDeviceVolume.ebs(
                        root_gb, encrypted=True, kms_key=key, volume_type=EbsDeviceVolumeType.GP3
                    ),
                )
            ],
        )
        for group in others:
            self.template.add_security_group(group)
        self.group = AutoScalingGroup(
            self,
            "Group",
            vpc=place.vpc,
            vpc_subnets=place.subnets,
            launch_template=self.template,
            min_capacity=0,
            max_capacity=1,
            desired_capacity=1,
            # The old instance ends first: it has the volume.
            update_policy=UpdatePolicy.rolling_update(min_instances_in_service=0, max_batch_size=1),
            signals=Signals.wait_for_count(1, timeout=_STARTING),
        )
        self._prepare(files, variables)
        Tags.of(self.group).add("Name", f"{stack.stack_name}/{name}")
        acknowledge(
            self.group,
            "AwsSolutions::AwsSolutions-AS3",
            "A group of one is not scaled; the alarms on the service tell that a server is missing.",
        )
        acknowledge(
            self.group,
            "Annotation::@aws-cdk/aws-autoscaling:desiredCapacitySet",
            "A host that somebody ended, by setting the size to 0, shall come back with a deployment.",
        )

    def allow(self, actions: Sequence[str], resources: Sequence[str]) -> None:
        """Let the host do this."""
        self.role.add_to_policy(PolicyStatement(actions=list(actions), resources=list(resources)))

    def explain(self, resource: str, reason: str) -> None:
        """Say why a resource that the host may use has a `*`. cdk-nag writes tokens as `<AWS::Region>`."""
        acknowledge(self.role, f"AwsSolutions::AwsSolutions-IAM5[Resource::{resource}]", reason)

    def allow_names(self, zone_arn: str, names: Sequence[str]) -> None:
        """Let the host give itself these names, and no others."""
        condition = {
            "ForAllValues:StringEquals": {
                "route53:ChangeResourceRecordSetsNormalizedRecordNames": list(names),
                "route53:ChangeResourceRecordSetsRecordTypes": ["A"],
            }
        }
        actions = ["route53:ChangeResourceRecordSets"]
        self.role.add_to_policy(PolicyStatement(actions=actions, resources=[zone_arn], conditions=condition))

    def _allow_sessions(self) -> None:
        # Of AmazonSSMManagedInstanceCore, what a session needs. It could read all parameters of the account besides.
        channels = ("CreateControlChannel", "CreateDataChannel", "OpenControlChannel", "OpenDataChannel")
        actions = ["ssm:UpdateInstanceInformation", *(f"ssmmessages:{channel}" for channel in channels)]
        self.allow(actions, ["*"])
        self.explain("*", "Sessions of Systems Manager and descriptions of EC2 know no resources.")

    def _prepare(self, files: HostFiles, variables: Mapping[str, str]) -> None:
        stack = Stack.of(self)
        logical = stack.get_logical_id(cast(CfnAutoScalingGroup, self.group.node.default_child))
        for asset in (files.packaging, files.compose):
            self.allow(["s3:GetObject"], [asset.bucket.arn_for_objects(asset.s3_object_key)])
        exported = {"REGION": stack.region, "ASSETS": files.packaging.s3_bucket_name, **variables}
        self._script.add_commands(
            "set -euo pipefail",
            *(f"export {key}='{value}'" for key, value in exported.items()),
            *_fetching(files, f"--stack-name {stack.stack_name} --logical-resource-id {logical}"),
        )


def _fetching(files: HostFiles, signalled: str) -> list[str]:
    """Fetch the files by way of the exit, once that is there, and tell CloudFormation how it ended."""
    return [
        "imds=http://169.254.169.254/latest",
        "session=$(curl -sf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' $imds/api/token)",
        'own=$(curl -sf -H "X-aws-ec2-metadata-token: $session" $imds/meta-data/instance-id)',
        "tell() {",
        "  if [ $? = 0 ]; then status=SUCCESS; else status=FAILURE; fi",
        f'  aws cloudformation signal-resource --region "$REGION" {signalled} --unique-id "$own" --status $status',
        "}",
        "trap tell EXIT",
        'if [ "$ROLE" != exit ]; then',
        '  export HTTPS_PROXY="http://exit.$ZONE:3128" NO_PROXY=169.254.169.254,localhost',
        "fi",
        "mkdir -p /opt/cragside && cd /opt/cragside",
        "tries=0",
        f"until aws s3 cp --region $REGION --quiet '{files.packaging.s3_object_url}' packaging.zip; do",
        "  tries=$((tries + 1)); [ $tries -lt 60 ]; sleep 10",
        "done",
        f"aws s3 cp --region $REGION --quiet '{files.compose.s3_object_url}' docker-compose.local.yml",
        "mkdir -p packaging && python3 -m zipfile -e packaging.zip packaging && rm packaging.zip",
        "sh packaging/hosts/prepare.sh",
    ]
