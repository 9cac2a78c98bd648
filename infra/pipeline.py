"""The CDK app of what a pipeline deploys with, which the pipeline itself does not deploy.

cdk deploy --app "python -m infra.pipeline" -c env=dev -c repository=github:OWNER/NAME
"""

import sys
from collections.abc import Sequence

from aws_cdk import App

from infra.app import synthesised
from infra.environments.choice import ANY, KEYS, chosen
from infra.environments.repository import repository_of
from infra.environments.stacks import PIPELINE, stack_prefix
from infra.stacks.pipeline import PipelineStack


def compose(app: App) -> PipelineStack:
    """The stack that the context asks for. Raises `NotDeployable`."""
    context = {key: app.node.try_get_context(key) for key in KEYS}
    environment = chosen({**context, **ANY})
    return PipelineStack(
        app,
        f"{stack_prefix(environment)}{PIPELINE}",
        environment=environment,
        repository=repository_of(app.node.try_get_context("repository")),
        new_provider=app.node.try_get_context("provider") != "existing",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Synthesise it. Return 2 if that is impossible."""
    return synthesised(arguments, compose, name="infra.pipeline", does="Synthesise the pipeline's roles.")


if __name__ == "__main__":
    sys.exit(main())
