"""The CDK app of an environment that is in a file: `--context file=PATH`, with the model's JSON."""

from pathlib import Path

from infra.app import compose, new_app
from infra.artifacts import artifacts_of
from infra.config import Environment


def main() -> None:
    """Synthesise it for the CDK's command line."""
    app = new_app()
    environment = Environment.model_validate_json(Path(app.node.get_context("file")).read_text())
    compose(app, environment, artifacts_of(environment).checked(environment))
    app.synth()


if __name__ == "__main__":
    main()
