"""Rights of a pipeline, and the variables that its jobs pass to `make`."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.config import NotDeployable
from infra.pipeline import repository_of

ROOT = Path(__file__).parents[2]
GITLAB = yaml.safe_load((ROOT / ".gitlab-ci.yml").read_text())


@pytest.mark.parametrize(
    "said", [None, "", "github:owner", "owner/name", "bitbucket:a/b", "github:*/name", "github:a/*", "gitlab:a/b@m*n"]
)
def test_a_repository_is_named_exactly(said: str | None) -> None:
    with pytest.raises(NotDeployable, match=r"repository: .* is not github:OWNER/NAME"):
        repository_of(said)


def test_a_branch_that_is_not_main_is_named() -> None:
    assert repository_of("gitlab:group/below/project@release/1").branch == "release/1"
    assert repository_of("github:owner/name").branch == "main"


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The stack for a host with a new provider, and for the other with an existing one."""
    from infra.app import new_app
    from infra.pipeline import compose

    found = {}
    for name, said in {
        "github": {"env": "prod", "repository": "github:owner/name"},
        "gitlab": {"env": "dev", "repository": "gitlab:group/project@release", "provider": "existing"},
    }.items():
        out = tmp_path_factory.mktemp(name)
        app = new_app(said, str(out))
        compose(app)
        app.synth()
        found[name] = json.loads((out / f"cragside-{said['env']}-pipeline.template.json").read_text())
    return found


def roles(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The properties of the roles, `Deploy` and `Review`."""
    found = [(name, said) for name, said in template["Resources"].items() if said["Type"] == "AWS::IAM::Role"]
    return {re.sub("Role.*", "", name): said["Properties"] for name, said in found}


def trust(role: dict[str, Any]) -> dict[str, Any]:
    (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Action"] == "sts:AssumeRoleWithWebIdentity"
    return dict(statement["Condition"])


@pytest.mark.infra
def test_a_job_of_github_is_trusted_by_its_repository_and_environment(templates: dict[str, Any]) -> None:
    host = "token.actions.githubusercontent.com"
    found = roles(templates["github"])
    assert trust(found["Deploy"]) == {
        "StringEquals": {f"{host}:aud": "sts.amazonaws.com", f"{host}:sub": ["repo:owner/name:environment:prod"]}
    }
    assert trust(found["Review"])["StringEquals"][f"{host}:sub"] == [
        "repo:owner/name:pull_request",
        "repo:owner/name:ref:refs/heads/main",
    ]
    (provider,) = [each for each in templates["github"]["Resources"].values() if "OIDC" in each["Type"]]
    assert provider["Properties"] == {"ClientIdList": ["sts.amazonaws.com"], "Url": f"https://{host}"} | {
        key: value for key, value in provider["Properties"].items() if key == "Tags"
    }


@pytest.mark.infra
def test_a_job_of_gitlab_is_trusted_by_its_project_and_branch(templates: dict[str, Any]) -> None:
    found = roles(templates["gitlab"])
    assert trust(found["Deploy"]) == {
        "StringEquals": {
            "gitlab.com:aud": "sts.amazonaws.com",
            "gitlab.com:sub": ["project_path:group/project:ref_type:branch:ref:release"],
        }
    }
    assert trust(found["Review"]) == {
        "StringEquals": {"gitlab.com:aud": "sts.amazonaws.com"},
        "StringLike": {"gitlab.com:sub": ["project_path:group/project:ref_type:branch:ref:*"]},
    }
    assert not [each for each in templates["gitlab"]["Resources"].values() if "OIDC" in each["Type"]]


@pytest.mark.infra
def test_the_roles_may_only_assume_those_of_the_bootstrap(templates: dict[str, Any]) -> None:
    for template in templates.values():
        assert {each["Type"] for each in template["Resources"].values()} <= {"AWS::IAM::Role", "AWS::IAM::OIDCProvider"}
        found = {name: allowed(role) for name, role in roles(template).items()}
        assert found == {"Deploy": {"deploy", "file-publishing", "lookup"}, "Review": {"lookup"}}


def allowed(role: dict[str, Any]) -> set[str]:
    """The bootstrap's roles that this one may assume, which is all that it may do."""
    assert "ManagedPolicyArns" not in role
    (policy,) = role["Policies"]
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert (statement["Action"], statement["Effect"]) == ("sts:AssumeRole", "Allow")
    resources = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
    found = [re.search(r"role/cdk-hnb659fds-([a-z-]+)-role-", json.dumps(each)) for each in resources]
    assert "*" not in json.dumps(resources)
    return {match[1] for match in found if match}


@pytest.mark.infra
def test_a_bootstrap_of_its_own_has_its_qualifier_in_every_role(tmp_path: Path) -> None:
    from infra.app import new_app
    from infra.pipeline import compose

    file = tmp_path / "mine.toml"
    file.write_text('bootstrap = { qualifier = "teama", permissions_boundary = "Bounds" }')
    said = {"env": "dev", "repository": "github:owner/name", "file": str(file)}
    app = new_app(said, str(tmp_path / "out"))
    compose(app)
    app.synth()
    template = json.loads((tmp_path / "out/cragside-dev-pipeline.template.json").read_text())
    for role in roles(template).values():
        assert "cdk-teama-lookup-role-" in json.dumps(role["Policies"])
        assert "hnb659fds" not in json.dumps(role)
        assert ":policy/Bounds" in json.dumps(role["PermissionsBoundary"])


def made(target: str) -> list[str]:
    """The commands of GitHub's workflow and of GitLab's job that make a target."""
    job = GITLAB[".deploy" if target == "deploy" else target]
    texts = ((ROOT / f".github/workflows/{target}.yml").read_text(), "\n".join(job["script"]))
    return [command for text in texts for command in re.findall(rf'make {target} ENV="\S+" ARGS="[^"]*"', text)]


@pytest.mark.parametrize("target", ["deploy", "diff", "drift"])
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, []),
        ({"FILE": "infra/mine.toml"}, ["file=infra/mine.toml"]),
        ({"KNOWLEDGE": "s3://b/p#0", "FILE": ""}, ["knowledge=s3://b/p#0"]),
        ({"KNOWLEDGE": "none", "FILE": "a.toml"}, ["knowledge=none", "file=a.toml"]),
    ],
)
def test_all_jobs_say_what_the_environment_is_deployed_from(
    target: str, said: dict[str, str], expected: list[str]
) -> None:
    commands = made(target)
    assert len(commands) == 2
    variables = {**said, **dict.fromkeys(("ENV", "DIFF_ENV", "CI_ENVIRONMENT_NAME"), "dev")}
    for command in commands:
        # What the shell would hand to make.
        shown = subprocess.run(
            ["sh", "-ec", command.replace(f"make {target}", "printf '%s\\n'")],
            env={**variables, "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=True,
        )
        environment, arguments = shown.stdout.splitlines()
        assert environment == "ENV=dev"
        assert re.findall(r"-c (\S+)", arguments) == expected
