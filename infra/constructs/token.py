"""The API token: a secret that the template only refers to."""

from collections.abc import Mapping

from aws_cdk import RemovalPolicy
from aws_cdk.aws_iam import IRole, PolicyStatement
from aws_cdk.aws_kms import IKey
from aws_cdk.aws_secretsmanager import ISecret, Secret, SecretStringGenerator
from constructs import Construct

from infra.constructs.exceptions import acknowledge


class ApiToken(Construct):
    """An existing secret with the token as its text, or a new one that Secrets Manager fills."""

    def __init__(
        self, scope: Construct, name: str, *, existing_arn: str | None, keep: bool, key: IKey | None = None
    ) -> None:
        super().__init__(scope, name)
        self._secret: ISecret
        if existing_arn is not None:
            self._secret = Secret.from_secret_attributes(
                self, "Secret", secret_complete_arn=existing_arn, encryption_key=key
            )
        else:
            self._secret = self._generated(keep, key)

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables of a function: the secret's ARN, which is not secret."""
        return {"RAG_API_TOKEN_SECRET": self.arn}

    @property
    def arn(self) -> str:
        """The secret's ARN, which tools accept in place of its name."""
        return self._secret.secret_arn

    def grant_read(self, role: IRole) -> None:
        """Let a function's role read this one secret."""
        actions = ["secretsmanager:GetSecretValue"]  # CDK's own grant has DescribeSecret too, which nobody calls
        role.add_to_principal_policy(PolicyStatement(actions=actions, resources=[self.arn]))

    def _generated(self, keep: bool, key: IKey | None) -> Secret:
        secret = Secret(
            self,
            "Secret",
            description="The token that requests to cragside have to bring.",
            # 43 letters and digits have 256 bits and need no quoting in a header.
            generate_secret_string=SecretStringGenerator(password_length=43, exclude_punctuation=True),
            encryption_key=key,
            removal_policy=RemovalPolicy.RETAIN if keep else RemovalPolicy.DESTROY,
        )
        acknowledge(
            secret,
            "AwsSolutions::AwsSolutions-SMG4",
            "Clients hold the token too: a rotation that does not hand it to them would lock them out.",
        )
        return secret
