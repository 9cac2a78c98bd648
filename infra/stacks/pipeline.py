"""Roles of a pipeline, which may assume only those of the CDK's bootstrap."""

import aws_cdk as cdk
from aws_cdk.aws_iam import CfnOIDCProvider
from constructs import Construct

from infra.constructs.ci_role import AUDIENCE, CiRole
from infra.environments.model import Environment
from infra.environments.repository import Repository
from infra.stacks.base import EnvironmentStack

# The name that `cdk bootstrap` gives its roles unless it is told another.
_QUALIFIER = "hnb659fds"


class PipelineStack(EnvironmentStack):
    """Outputs: the ARNs of `DeployRole`, `ReviewRole` and of the bootstrap's `LookupRole`.

    An account has one identity provider for each host, so a second environment in it uses the first one's.
    """

    def __init__(
        self, scope: Construct, name: str, *, environment: Environment, repository: Repository, new_provider: bool
    ) -> None:
        super().__init__(scope, name, environment, f"what the pipeline deploys {environment.name} with")
        provider = f"arn:{self.partition}:iam::{self.account}:oidc-provider/{repository.issuer}"
        if new_provider:
            url = f"https://{repository.issuer}"
            provider = CfnOIDCProvider(self, "Provider", url=url, client_id_list=[AUDIENCE]).attr_arn
        look = self._of_bootstrap("lookup")
        deploy = CiRole(
            self,
            "Deploy",
            description=f"The pipeline of {repository.path} deploys {environment.name}.",
            provider_arn=provider,
            issuer=repository.issuer,
            subjects=repository.deploying(environment.name),
            assumes=[self._of_bootstrap("deploy"), self._of_bootstrap("file-publishing"), look],
        )
        review = CiRole(
            self,
            "Review",
            description=f"The pipeline of {repository.path} compares {environment.name} with its code.",
            provider_arn=provider,
            issuer=repository.issuer,
            subjects=repository.reviewing(),
            assumes=[look],
        )
        for key, value in {"DeployRole": deploy.arn, "ReviewRole": review.arn, "LookupRole": look}.items():
            cdk.CfnOutput(self, key, value=value)

    def _of_bootstrap(self, role: str) -> str:
        name = f"cdk-{_QUALIFIER}-{role}-role-{self.account}-{self.region}"
        return f"arn:{self.partition}:iam::{self.account}:role/{name}"
