"""The base of all stacks: a place, the operator's key, log groups, and written exceptions to rules."""

from functools import cached_property
from typing import cast

import aws_cdk as cdk
from aws_cdk import Acknowledgment, Aws, Fn, RemovalPolicy, Validations
from aws_cdk.aws_iam import PolicyStatement, Role
from aws_cdk.aws_kms import IKey, Key
from aws_cdk.aws_logs import CfnLogGroup, LogGroup
from constructs import Construct, IConstruct

from infra.config import Environment


def acknowledge(where: IConstruct, rule: str, reason: str) -> None:
    """Accept a finding on this construct and those below it. `rule` is its id with the prefix of its tool."""
    Validations.of(where).acknowledge(Acknowledgment(id=rule, reason=reason))


class EnvironmentStack(cdk.Stack):
    """A stack in the environment's account and region. Where data is kept, it cannot be deleted by mistake."""

    def __init__(self, scope: Construct, name: str, environment: Environment, description: str) -> None:
        bootstrap = environment.bootstrap
        boundary = bootstrap.permissions_boundary
        super().__init__(
            scope,
            f"{environment.stack_prefix}{name}",
            env=cdk.Environment(account=environment.account, region=environment.region),
            description=f"cragside: {description}",
            termination_protection=environment.keep_data,
            synthesizer=cdk.DefaultStackSynthesizer(qualifier=bootstrap.qualifier),
            permissions_boundary=cdk.PermissionsBoundary.from_name(boundary) if boundary else None,
        )
        self.environment_config = environment

    @cached_property
    def key(self) -> IKey | None:
        """Return the operator's key, if there is one."""
        arn = self.environment_config.operations.kms_key_arn
        return Key.from_key_arn(self, "Key", arn) if arn else None

    @property
    def removal(self) -> RemovalPolicy:
        """Return the fate of data when the stack is destroyed."""
        return RemovalPolicy.RETAIN if self.environment_config.keep_data else RemovalPolicy.DESTROY

    def log_group(self, name: str, *, vended: bool = False) -> LogGroup:
        """Make a log group with the environment's retention.

        Its name is generated, so that a group that outlived its stack does not block the next one. `vended`: services
        of AWS write there. One policy of the account lets them write to all groups of this prefix, while each other
        group adds to a policy that has a limit.
        """
        once = Fn.select(2, Fn.split("/", Aws.STACK_ID))  # unlike the stack's name, it never comes again
        group = LogGroup(
            self,
            name,
            log_group_name=f"/aws/vendedlogs/{self.stack_name}-{once}" if vended else None,
            removal_policy=self.removal,
            encryption_key=self.key,
        )
        cast(CfnLogGroup, group.node.default_child).retention_in_days = self.environment_config.log_retention_days
        return group

    def allow_key(self, role: Role, *services: str, actions: tuple[str, ...] = ("kms:Decrypt",)) -> None:
        """Let a role use the operator's key, if there is one, in calls that these services make for it alone."""
        if self.key is not None:
            hosts = [f"{service}.{Aws.REGION}.amazonaws.com" for service in services]
            role.add_to_policy(
                PolicyStatement(
                    actions=list(actions),
                    resources=[self.key.key_arn],
                    conditions={"StringEquals": {"kms:ViaService": hosts}},
                )
            )
