"""Refuses to build for an AWS that cannot be asked: python -m infra.credentials -c env=dev."""

import argparse
import sys
from collections.abc import Sequence

import boto3

from infra.choice import add_context, chosen
from infra.deployed import configured, telling


@telling
def main(arguments: Sequence[str] | None = None, session: boto3.Session | None = None) -> int:
    """Return 2 if AWS does not know the caller. Ignore options of the CDK."""
    parser = argparse.ArgumentParser(
        prog="python -m infra.credentials", description="Ask AWS who calls.", allow_abbrev=False
    )
    add_context(parser)
    given, _ = parser.parse_known_args(arguments)
    own = session or configured(chosen(dict(given.context), deploying=False))
    own.client("sts").get_caller_identity()
    return 0


if __name__ == "__main__":
    sys.exit(main())
