"""A volume that outlives the host that uses it, and its snapshots."""

from aws_cdk import Aws, RemovalPolicy, Size, Stack, Tags
from aws_cdk.aws_dlm import CfnLifecyclePolicy
from aws_cdk.aws_ec2 import EbsDeviceVolumeType, Volume
from aws_cdk.aws_iam import PolicyStatement, Role, ServicePrincipal
from aws_cdk.aws_kms import IKey
from constructs import Construct

from infra.constructs.exceptions import acknowledge
from infra.constructs.host import Host

_TAG = "cragside:snapshots"


class KeptVolume(Construct):
    """Encrypted, in one zone, with a snapshot each night, kept for `days`. Deleting its stack makes one too.

    `key` encrypts it; AWS' own key does without one.
    """

    def __init__(
        self, scope: Construct, name: str, *, zone: str, gigabytes: int, days: int, keep: bool, key: IKey | None
    ) -> None:
        super().__init__(scope, name)
        self._key = key
        self.volume = Volume(
            self,
            "Volume",
            availability_zone=zone,
            size=Size.gibibytes(gigabytes),
            volume_type=EbsDeviceVolumeType.GP3,
            encrypted=True,
            encryption_key=key,
            removal_policy=RemovalPolicy.RETAIN if keep else RemovalPolicy.SNAPSHOT,
        )
        marked = Stack.of(self).stack_name
        Tags.of(self.volume).add(_TAG, marked)
        role = Role(self, "Role", assumed_by=ServicePrincipal("dlm.amazonaws.com"))
        snapshots, volumes = (f"arn:{Aws.PARTITION}:ec2:*::snapshot/*", f"arn:{Aws.PARTITION}:ec2:*:*:volume/*")
        for actions, resources in (
            (["ec2:CreateSnapshot"], [snapshots, volumes]),
            (["ec2:DeleteSnapshot"], [snapshots]),
            (["ec2:DescribeVolumes", "ec2:DescribeSnapshots", "ec2:DescribeInstances"], ["*"]),
        ):
            role.add_to_policy(PolicyStatement(actions=actions, resources=resources))
        tags = PolicyStatement(
            actions=["ec2:CreateTags"],
            resources=[snapshots],
            conditions={"StringEquals": {"ec2:CreateAction": "CreateSnapshot"}},
        )
        role.add_to_policy(tags)
        reason = "Snapshots have no names before they are made, and descriptions know no resources."
        for resource in ("*", "arn:<AWS::Partition>:ec2:*::snapshot/*", "arn:<AWS::Partition>:ec2:*:*:volume/*"):
            acknowledge(role, f"AwsSolutions::AwsSolutions-IAM5[Resource::{resource}]", reason)
        nightly = CfnLifecyclePolicy.ScheduleProperty(
            name="nightly",
            create_rule=CfnLifecyclePolicy.CreateRuleProperty(interval=24, interval_unit="HOURS", times=["03:00"]),
            retain_rule=CfnLifecyclePolicy.RetainRuleProperty(count=days),
            copy_tags=True,
        )
        CfnLifecyclePolicy(
            self,
            "Snapshots",
            description="cragside nightly snapshots",
            execution_role_arn=role.role_arn,
            state="ENABLED",
            policy_details=CfnLifecyclePolicy.PolicyDetailsProperty(
                resource_types=["VOLUME"], target_tags=[{"key": _TAG, "value": marked}], schedules=[nightly]
            ),
        )

    @property
    def volume_id(self) -> str:
        """Its id, which a host attaches."""
        return self.volume.volume_id

    def let_attach(self, host: Host) -> None:
        """Let a host attach it to itself."""
        instances = f"arn:{Aws.PARTITION}:ec2:{Aws.REGION}:{Aws.ACCOUNT_ID}:instance/*"
        own = f"arn:{Aws.PARTITION}:ec2:{Aws.REGION}:{Aws.ACCOUNT_ID}:volume/{self.volume_id}"
        host.allow(["ec2:AttachVolume"], [own, instances])
        if self._key is not None:
            # EC2 decrypts what the host reads, by a grant that the one who attaches makes.
            host.role.add_to_policy(
                PolicyStatement(
                    actions=["kms:CreateGrant"],
                    resources=[self._key.key_arn],
                    conditions={
                        "Bool": {"kms:GrantIsForAWSResource": "true"},
                        "StringEquals": {"kms:ViaService": f"ec2.{Aws.REGION}.amazonaws.com"},
                    },
                )
            )
        host.allow(["ec2:DescribeVolumes"], ["*"])
        host.explain(
            "arn:<AWS::Partition>:ec2:<AWS::Region>:<AWS::AccountId>:instance/*",
            "The group gives its instance an id after the role is made; the volume is named.",
        )
