"""Log groups with a retention."""

from typing import cast

from aws_cdk import RemovalPolicy
from aws_cdk.aws_kms import IKey
from aws_cdk.aws_logs import CfnLogGroup, LogGroup
from constructs import Construct


def log_group(scope: Construct, name: str, days: int, *, keep: bool, key: IKey | None = None) -> LogGroup:
    """A log group that keeps its lines for `days` and, if `keep` is set, outlives the stack.

    It has a generated name, so a group that outlived its stack does not block the next one.
    """
    removal = RemovalPolicy.RETAIN if keep else RemovalPolicy.DESTROY
    group = LogGroup(scope, name, removal_policy=removal, encryption_key=key)
    cast(CfnLogGroup, group.node.default_child).retention_in_days = days
    return group
