"""Runs `sam validate` on templates, in an environment that has it: prints what it refuses, or how many are valid."""

import sys

from click.testing import CliRunner
from samcli.cli.main import cli  # type: ignore[import-not-found]

refused = []
for template in sys.argv[1:]:
    done = CliRunner().invoke(cli, ["validate", "--template-file", template, "--region", "eu-central-1"])
    if done.exit_code != 0:
        refused.append(f"{template}: {done.output} {done.exception}")
print("\n".join(refused) or f"{len(sys.argv) - 1} are valid")
