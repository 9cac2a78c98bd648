"""The CDK app of what a pipeline deploys with, which the pipeline itself does not deploy.

cdk deploy --app "python -m infra.pipeline" -c env=dev -c repository=github:OWNER/NAME
"""

import argparse
import sys
from collections.abc import Sequence

from aws_cdk import App

from infra.app import new_app
from infra.environments.choice import ANY, KEYS, add_context, chosen
from infra.environments.model import NotDeployable
from infra.environments.repository import repository_of
from infra.stacks.pipeline import PipelineStack


def compose(app: App) -> PipelineStack:
    """The stack that the context asks for. Raises `NotDeployable`."""
    said = {key: app.node.try_get_context(key) for key in KEYS}
    environment = chosen({**said, **ANY})
    return PipelineStack(
        app,
        f"cragside-{environment.name}-pipeline",
        environment=environment,
        repository=repository_of(app.node.try_get_context("repository")),
        new_provider=app.node.try_get_context("provider") != "existing",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Synthesise it. Return 2 if that is impossible."""
    parser = argparse.ArgumentParser(prog="python -m infra.pipeline", description="Synthesise the pipeline's roles.")
    add_context(parser)
    parser.add_argument("--out", help="folder of the cloud assembly; the CDK CLI says its own")
    given = parser.parse_args(arguments)
    app = new_app(dict(given.context), given.out)
    try:
        compose(app)
    except NotDeployable as error:
        print(error, file=sys.stderr)
        return 2
    app.synth()
    return 0


if __name__ == "__main__":
    sys.exit(main())
