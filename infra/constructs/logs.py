"""Log groups that forget."""

from typing import cast

from aws_cdk import RemovalPolicy
from aws_cdk.aws_logs import CfnLogGroup, LogGroup
from constructs import Construct


def log_group(scope: Construct, name: str, days: int, *, keep: bool) -> LogGroup:
    """A log group that keeps its lines for so many days and, if `keep`, outlives the stack.

    It has no name of its own: one that outlived its stack would be in the way of the next.
    """
    removal = RemovalPolicy.RETAIN if keep else RemovalPolicy.DESTROY
    group = LogGroup(scope, name, removal_policy=removal)
    cast(CfnLogGroup, group.node.default_child).retention_in_days = days
    return group
