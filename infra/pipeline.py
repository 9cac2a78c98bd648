"""The CDK app of the roles that a pipeline deploys with, which the pipeline itself does not deploy.

cdk deploy --app "python -m infra.pipeline" -c env=dev -c repository=github:OWNER/NAME
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import App
from aws_cdk.aws_iam import CfnOIDCProvider, PolicyDocument, PolicyStatement, Role, WebIdentityPrincipal
from constructs import Construct

from infra.app import context_of, synthesised
from infra.choice import chosen
from infra.config import Environment, NotDeployable
from infra.stack import EnvironmentStack

# What `make pipeline` deploys, which no other command touches.
PIPELINE = "pipeline"
# What `aws-actions/configure-aws-credentials` asks for by default.
_AUDIENCE = "sts.amazonaws.com"
# Without a wildcard, which would let other repositories in.
_FORM = re.compile(r"(github|gitlab):([A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)+)(?:@([A-Za-z0-9._/-]+))?")


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository on github.com or gitlab.com, and the branch that is deployed."""

    host: str
    path: str
    branch: str

    @property
    def issuer(self) -> str:
        """Return the host whose tokens are trusted."""
        return "token.actions.githubusercontent.com" if self.host == "github" else "gitlab.com"

    def deploying(self, environment: str) -> list[str]:
        """Return the subjects of jobs that deploy an environment."""
        if self.host == "github":
            return [f"repo:{self.path}:environment:{environment}"]
        return [f"project_path:{self.path}:ref_type:branch:ref:{self.branch}"]

    def reviewing(self) -> list[str]:
        """Return the subjects of jobs that only look, on any branch of this repository. `*` stands for a branch."""
        if self.host == "github":
            return [f"repo:{self.path}:pull_request", f"repo:{self.path}:ref:refs/heads/{self.branch}"]
        return [f"project_path:{self.path}:ref_type:branch:ref:*"]


def repository_of(text: str | None) -> Repository:
    """Parse `github:OWNER/NAME`, `gitlab:GROUP/PROJECT`, each with `@BRANCH` if it is not main."""
    found = _FORM.fullmatch(text or "")
    if found is None:
        raise NotDeployable(
            f"repository: {text!r} is not github:OWNER/NAME or gitlab:GROUP/PROJECT, with @BRANCH or not"
        )
    host, path, branch = found.groups()
    return Repository(host, path, branch or "main")


class PipelineStack(EnvironmentStack):
    """Outputs: the ARNs of `DeployRole`, `ReviewRole` and of the bootstrap's `LookupRole`.

    An account has one identity provider for each host, so a second environment in it uses the first one's.
    """

    def __init__(
        self, scope: Construct, environment: Environment, repository: Repository, *, new_provider: bool
    ) -> None:
        super().__init__(scope, PIPELINE, environment, f"what the pipeline deploys {environment.name} with")
        self._issuer = repository.issuer
        self._provider = f"arn:{self.partition}:iam::{self.account}:oidc-provider/{self._issuer}"
        if new_provider:
            url = f"https://{self._issuer}"
            self._provider = CfnOIDCProvider(self, "Provider", url=url, client_id_list=[_AUDIENCE]).attr_arn
        look = self._of_bootstrap("lookup")
        all_of = [self._of_bootstrap("deploy"), self._of_bootstrap("file-publishing"), look]
        path, name = repository.path, environment.name
        deploying = f"The pipeline of {path} deploys {name}."
        reviewing = f"The pipeline of {path} compares {name} with its code."
        roles = {
            "DeployRole": self._role("Deploy", deploying, repository.deploying(name), all_of),
            "ReviewRole": self._role("Review", reviewing, repository.reviewing(), [look]),
            "LookupRole": look,
        }
        for key, value in roles.items():
            cdk.CfnOutput(self, key, value=value)

    def _role(self, name: str, description: str, subjects: Sequence[str], assumes: Sequence[str]) -> str:
        """Make a role that jobs take by OpenID Connect. It may assume the given roles and do nothing else."""
        matching = "StringLike" if any("*" in subject for subject in subjects) else "StringEquals"
        conditions: dict[str, dict[str, object]] = {"StringEquals": {f"{self._issuer}:aud": _AUDIENCE}}
        conditions.setdefault(matching, {})[f"{self._issuer}:sub"] = list(subjects)
        assuming = PolicyStatement(actions=["sts:AssumeRole"], resources=list(assumes))
        role = Role(
            Construct(self, name),
            "Role",
            description=description,
            assumed_by=WebIdentityPrincipal(self._provider, conditions),
            inline_policies={"bootstrap": PolicyDocument(statements=[assuming])},
        )
        return role.role_arn

    def _of_bootstrap(self, role: str) -> str:
        qualifier = self.environment_config.bootstrap.qualifier
        name = f"cdk-{qualifier}-{role}-role-{self.account}-{self.region}"
        return f"arn:{self.partition}:iam::{self.account}:role/{name}"


def compose(app: App) -> PipelineStack:
    """The stack that the context asks for. Raises `NotDeployable`."""
    environment = chosen(context_of(app), deploying=False)
    repository = repository_of(app.node.try_get_context("repository"))
    new_provider = app.node.try_get_context("provider") != "existing"
    return PipelineStack(app, environment, repository, new_provider=new_provider)


def main(arguments: Sequence[str] | None = None) -> int:
    """Synthesise it. Return 2 if that is impossible."""
    return synthesised(arguments, compose, name="infra.pipeline", does="Synthesise the pipeline's roles.")


if __name__ == "__main__":
    sys.exit(main())
