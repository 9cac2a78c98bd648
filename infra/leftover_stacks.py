"""Refuses to leave deployed stacks behind: python -m infra.leftover_stacks -c env=dev -c file=FILE.toml."""

import argparse
import sys
from collections.abc import Sequence

import boto3

from infra.choice import add_context, chosen
from infra.config import Environment
from infra.deployed import Deployed, looking, telling

# What `make pipeline` deploys, which no other command touches.
_PIPELINE = "pipeline"


def leftover(environment: Environment, session: boto3.Session | None = None) -> list[str]:
    """The deployed stacks that the environment, as it is described, does not have. Nothing is asked of the others."""
    named = {*environment.stack_names, f"{environment.stack_prefix}{_PIPELINE}"}
    return sorted(set(Deployed(environment, looking(environment, session)).stacks()) - named)


@telling
def main(arguments: Sequence[str] | None = None, session: boto3.Session | None = None) -> int:
    """Return 2 if stacks would be left, or if AWS does not say. Ignore options of the CDK."""
    parser = argparse.ArgumentParser(
        prog="python -m infra.leftover_stacks", description="Refuse to leave stacks.", allow_abbrev=False
    )
    add_context(parser)
    given, _ = parser.parse_known_args(arguments)
    context = dict(given.context)
    environment = chosen(context)
    found = [] if context.get("leaving") == "true" else leftover(environment, session)
    if found:
        print(
            f"These deployed stacks would be left, and go on costing money: {', '.join(found)}. "
            'Name the file that they were deployed with, ARGS="-c file=FILE.toml", '
            'or leave them with ARGS="-c leaving=true".',
            file=sys.stderr,
        )
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
