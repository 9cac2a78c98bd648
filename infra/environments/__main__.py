"""Prints what the layers of an environment are built for: python -m infra.environments -c env=dev -c python=3.13."""

import argparse
import sys
from collections.abc import Sequence

from infra.artifacts import MissingArtifact, artifacts_of
from infra.environments.choice import add_context, chosen
from infra.environments.dev import DEV
from infra.environments.model import NotDeployable


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the options of the build. Return 2 if the environment cannot be deployed. Ignore options of the CDK."""
    parser = argparse.ArgumentParser(
        prog="python -m infra.environments", description="What layers are built for.", allow_abbrev=False
    )
    add_context(parser)
    given, _ = parser.parse_known_args(arguments)
    try:
        environment = chosen(dict(given.context))
        if environment.knowledge != DEV.knowledge:  # the demo, which is baked next
            artifacts_of(environment).check_knowledge()
    except (NotDeployable, MissingArtifact) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"--python {environment.python} --arch {environment.architecture}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
