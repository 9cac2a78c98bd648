"""The CDK app.

python -m infra.app                    # what the CDK CLI runs: the context says which environment
python -m infra.app -c env=dev --out build/cdk/dev      # synthesis without the CLI
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from aws_cdk import App, Tags, Validations
from cdk_nag import AwsSolutionsChecks, ServerlessChecks

from infra.artifacts import Artifacts, MissingArtifact, artifacts_of
from infra.choice import KEYS, add_context, chosen, refuse_unknown
from infra.config import Environment, Indexed, NotDeployable
from infra.knowledge import KnowledgeStack
from infra.network import NetworkStack
from infra.observability import ObservabilityStack
from infra.service import ServiceStack

# What the CDK recommends to new projects, which `cdk flags --unstable=flags` lists, and four choices of ours. They are
# said here, not in cdk.json, so that a synthesis without the CLI gives the same template.
_FLAGS = {
    **json.loads(Path(__file__).with_name("flags.json").read_text()),
    "@aws-cdk/core:defaultCrossStackReferences": "weak",  # exports would keep a shape from being changed: ADR 37
    "@aws-cdk/aws-ec2:restrictDefaultSecurityGroup": False,  # nothing is in it, and emptying it takes one more function
    "@aws-cdk/core:validateAgainstDefaultRules": False,  # cfn-lint does; the stack of an existing network may be empty
    "@aws-cdk/core:enableAdditionalMetadataCollection": False,  # no usage is reported
}


def environment_of(app: App) -> Environment:
    """The environment that the context names, with its changes. Raises `NotDeployable`."""
    return chosen(context_of(app))


def context_of(app: App) -> dict[str, str | None]:
    """Return the context's values of our keys."""
    return {key: app.node.try_get_context(key) for key in KEYS}


def compose(app: App, environment: Environment, artifacts: Artifacts) -> ServiceStack:
    """The stacks of an environment in the app."""
    Tags.of(app).add("application", "cragside")
    Tags.of(app).add("environment", environment.name)
    for key, value in environment.operations.tags.items():
        Tags.of(app).add(key, value)
    network, knowledge = environment.network, environment.knowledge
    placement = NetworkStack(app, environment, network).functions if network else None
    writable = None
    if isinstance(knowledge, Indexed):
        writable = KnowledgeStack(app, environment, knowledge, artifacts, placement)
    service = ServiceStack(app, environment, artifacts, placement, writable.for_requests if writable else None)
    if environment.observability != "none":
        ObservabilityStack(app, environment, service, writable)
    return service


def new_app(context: dict[str, str] | None = None, out: str | None = None) -> App:
    """Make an app with the flags of this project, which cdk-nag checks. `context` is added to that of the CLI.

    A finding that is not acknowledged ends the synthesis.
    """
    app = App(outdir=out, post_cli_context={**_FLAGS, **(context or {})})
    Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))
    return app


def synthesised(arguments: Sequence[str] | None, composed: Callable[[App], object], *, name: str, does: str) -> int:
    """Compose an app and synthesise it, as a command. Return 2 if that is impossible."""
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=does)
    add_context(parser)
    parser.add_argument("--out", help="folder of the cloud assembly; the CDK CLI says its own")
    given = parser.parse_args(arguments)
    app = new_app(dict(given.context), given.out)
    try:
        # The CDK's command line takes any key.
        refuse_unknown(app.node.get_all_context())
        composed(app)
    except (NotDeployable, MissingArtifact) as error:
        print(error, file=sys.stderr)
        return 2
    app.synth()
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Synthesise the environment that the context names. Return 2 if that is impossible."""

    def composed(app: App) -> None:
        environment = environment_of(app)
        artifacts = artifacts_of(environment)
        destroying = app.node.try_get_context("destroying") == "true"
        compose(app, environment, artifacts.unbuilt() if destroying else artifacts.checked(environment))

    return synthesised(arguments, composed, name="infra.app", does="Synthesise an environment of cragside.")


if __name__ == "__main__":
    sys.exit(main())
