"""The CDK app.

python -m infra.app                    # what the CDK CLI runs: the context says which environment
python -m infra.app -c env=dev --out build/cdk/dev      # synthesis without the CLI
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from aws_cdk import App, Tags

from infra.artifacts import ROOT, Artifacts, MissingArtifact, artifacts_of
from infra.constructs.servers import Servers
from infra.constructs.watched import Watched
from infra.environments.choice import KEYS, add_context, chosen, refuse_unknown
from infra.environments.knowledge import Writable
from infra.environments.model import Environment, NotDeployable
from infra.environments.servers import SelfHosted
from infra.environments.stacks import stack_prefix
from infra.stacks.data import DataStack
from infra.stacks.knowledge import KnowledgeStack
from infra.stacks.network import NetworkStack
from infra.stacks.observability import ObservabilityStack
from infra.stacks.service import ServiceStack

# What the CDK recommends to new projects, which `cdk flags --unstable=flags` lists, and four choices of ours. They are
# said here, not in cdk.json, so that a synthesis without the CLI gives the same template.
_FLAGS = {
    **json.loads(Path(__file__).with_name("flags.json").read_text()),
    "@aws-cdk/core:defaultCrossStackReferences": "strong",  # a stack that others use cannot be deleted
    "@aws-cdk/aws-ec2:restrictDefaultSecurityGroup": False,  # nothing is in it, and emptying it takes one more function
    "@aws-cdk/core:validateAgainstDefaultRules": False,  # cfn-lint does; the stack of an existing network may be empty
    "@aws-cdk/core:enableAdditionalMetadataCollection": False,  # no usage is reported
}


def environment_of(app: App) -> Environment:
    """The environment that the context names, with its changes. Raises `NotDeployable`."""
    return chosen({key: app.node.try_get_context(key) for key in KEYS})


def compose(app: App, environment: Environment, artifacts: Artifacts) -> ServiceStack:
    """The stacks of an environment in the app."""
    Tags.of(app).add("application", "cragside")
    Tags.of(app).add("environment", environment.name)
    for key, value in environment.operations.tags.items():
        Tags.of(app).add(key, value)
    prefix = stack_prefix(environment)
    inside = NetworkStack(app, f"{prefix}network", environment=environment).network if environment.network else None
    placement, servers = inside.functions if inside else None, servers_of(environment)
    if isinstance(environment.servers, SelfHosted) and inside is not None:
        servers = DataStack(
            app, f"{prefix}data", environment=environment, hosted=environment.servers, network=inside, root=ROOT
        ).servers
    written = None
    if isinstance(environment.knowledge, Writable):
        written = KnowledgeStack(
            app,
            f"{prefix}knowledge",
            environment=environment,
            knowledge=environment.knowledge,
            artifacts=artifacts,
            placement=placement,
            servers=servers,
        )
    service = ServiceStack(
        app,
        f"{prefix}service",
        environment=environment,
        artifacts=artifacts,
        placement=placement,
        servers=servers,
        writable=written.for_requests if written else None,
    )
    watched = Watched(service.api.api, service.enrich.function)
    if written is not None:
        queue = written.queue
        watched = replace(watched, index=written.index.function, tasks=queue.tasks)
    ObservabilityStack(app, f"{prefix}observability", environment=environment, watched=watched)
    return service


def servers_of(environment: Environment) -> Servers:
    """Return the functions' environment for the servers."""
    return Servers(environment.endpoints.variables, environment.endpoints.secret_arns)


def new_app(context: dict[str, str] | None = None, out: str | None = None) -> App:
    """An app with the flags of this project. `context` is added to that of the CLI."""
    return App(outdir=out, post_cli_context={**_FLAGS, **(context or {})})


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
        compose(app, environment, artifacts_of(environment).checked(environment))

    return synthesised(arguments, composed, name="infra.app", does="Synthesise an environment of cragside.")


if __name__ == "__main__":
    sys.exit(main())
