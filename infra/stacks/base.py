"""Base of all stacks of an environment."""

from functools import cached_property

import aws_cdk as cdk
from aws_cdk.aws_kms import IKey, Key
from constructs import Construct

from infra.environments.model import Environment


class EnvironmentStack(cdk.Stack):
    """A stack in the environment's account and region. Where data is kept, it cannot be deleted by mistake."""

    def __init__(self, scope: Construct, name: str, environment: Environment, description: str) -> None:
        super().__init__(
            scope,
            name,
            env=cdk.Environment(account=environment.account, region=environment.region),
            description=f"cragside: {description}",
            termination_protection=environment.keep_data,
        )
        self._environment = environment

    @cached_property
    def _key(self) -> IKey | None:
        """The operator's key, if there is one."""
        arn = self._environment.operations.kms_key_arn
        return Key.from_key_arn(self, "Key", arn) if arn else None
