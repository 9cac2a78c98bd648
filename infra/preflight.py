"""Asks AWS before anything is built: python -m infra.preflight -c env=dev.

It refuses where AWS does not know the caller; with --stacks, to leave deployed stacks that the arguments do not name.
"""

import argparse
import sys
from collections.abc import Sequence

import boto3

from infra.choice import add_context, chosen
from infra.config import Environment
from infra.deployed import Deployed, configured, looking, telling

# What `make pipeline` deploys, which no other command touches.
_PIPELINE = "pipeline"


def leftover(environment: Environment, session: boto3.Session | None = None) -> list[str]:
    """The deployed stacks that the environment, as it is described, does not have. Nothing is asked of the others."""
    named = {*environment.stack_names, f"{environment.stack_prefix}{_PIPELINE}"}
    return sorted(set(Deployed(environment, looking(environment, session)).stacks()) - named)


@telling
def main(arguments: Sequence[str] | None = None, session: boto3.Session | None = None) -> int:
    """Return 2 if AWS does not know the caller, or if stacks would be left. Ignore options of the CDK."""
    parser = argparse.ArgumentParser(prog="python -m infra.preflight", description="Ask AWS first.", allow_abbrev=False)
    add_context(parser)
    parser.add_argument("--stacks", action="store_true", help="refuse to leave deployed stacks behind")
    given, _ = parser.parse_known_args(arguments)
    context = dict(given.context)
    environment = chosen(context, deploying=given.stacks)
    if not given.stacks:
        (session or configured(environment)).client("sts").get_caller_identity()
        return 0
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
