"""Addresses and secrets of the servers that functions reach."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from aws_cdk.aws_iam import IRole, PolicyStatement


@dataclass(frozen=True, slots=True)
class Servers:
    """A function's variables, with the ARN of each secret in place of its text."""

    variables: Mapping[str, str] = field(default_factory=dict)
    secret_arns: tuple[str, ...] = ()

    def grant_read(self, role: IRole) -> None:
        """Let a function's role read these secrets, and no others."""
        if self.secret_arns:
            actions = ["secretsmanager:GetSecretValue"]
            role.add_to_principal_policy(PolicyStatement(actions=actions, resources=list(self.secret_arns)))
