"""The use of the operator's key."""

from collections.abc import Sequence

from aws_cdk import Aws
from aws_cdk.aws_iam import PolicyStatement, Role
from aws_cdk.aws_kms import IKey


def let_use(role: Role, key: IKey, actions: Sequence[str], *, through: Sequence[str]) -> None:
    """Let a role use a key, in calls that these services of AWS make for it alone."""
    hosts = [f"{service}.{Aws.REGION}.amazonaws.com" for service in through]
    role.add_to_policy(
        PolicyStatement(
            actions=list(actions),
            resources=[key.key_arn],
            conditions={"StringEquals": {"kms:ViaService": hosts}},
        )
    )
