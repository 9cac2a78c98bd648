"""The repository whose pipeline deploys."""

import re
from typing import Annotated, Literal

from pydantic import StringConstraints

from infra.environments.base import Data
from infra.environments.model import NotDeployable

_FORM = re.compile(r"(github|gitlab):([A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)+)(?:@([A-Za-z0-9._/-]+))?")
# Without a wildcard, which would let other repositories in.
Plain = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._/-]+$")]


class Repository(Data):
    """A repository on github.com or gitlab.com, and the branch that is deployed."""

    host: Literal["github", "gitlab"]
    path: Plain
    branch: Plain = "main"

    @property
    def issuer(self) -> str:
        """The host whose tokens are trusted."""
        return "token.actions.githubusercontent.com" if self.host == "github" else "gitlab.com"

    def deploying(self, environment: str) -> list[str]:
        """The subjects of jobs that deploy an environment."""
        if self.host == "github":
            return [f"repo:{self.path}:environment:{environment}"]
        return [f"project_path:{self.path}:ref_type:branch:ref:{self.branch}"]

    def reviewing(self) -> list[str]:
        """The subjects of jobs that only look, on any branch of this repository. `*` stands for a branch."""
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
    return Repository.model_validate({"host": host, "path": path, "branch": branch or "main"})
