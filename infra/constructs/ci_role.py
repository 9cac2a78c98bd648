"""A role that jobs of a pipeline take by OpenID Connect, without a stored key."""

from collections.abc import Sequence

from aws_cdk.aws_iam import PolicyDocument, PolicyStatement, Role, WebIdentityPrincipal
from constructs import Construct

# What `aws-actions/configure-aws-credentials` asks for by default.
AUDIENCE = "sts.amazonaws.com"


class CiRole(Construct):
    """May assume the given roles and do nothing else. `arn` is what a job needs to know."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        description: str,
        provider_arn: str,
        issuer: str,
        subjects: Sequence[str],
        assumes: Sequence[str],
    ) -> None:
        super().__init__(scope, name)
        matching = "StringLike" if any("*" in subject for subject in subjects) else "StringEquals"
        conditions: dict[str, dict[str, object]] = {"StringEquals": {f"{issuer}:aud": AUDIENCE}}
        conditions.setdefault(matching, {})[f"{issuer}:sub"] = list(subjects)
        assuming = PolicyStatement(actions=["sts:AssumeRole"], resources=list(assumes))
        role = Role(
            self,
            "Role",
            description=description,
            assumed_by=WebIdentityPrincipal(provider_arn, conditions),
            inline_policies={"bootstrap": PolicyDocument(statements=[assuming])},
        )
        self.arn = role.role_arn
