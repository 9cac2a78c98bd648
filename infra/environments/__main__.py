"""Prints what the layers of an environment are built for: python -m infra.environments dev."""

import sys

from infra.environments import named
from infra.environments.model import UnknownEnvironment


def main() -> int:
    """Print the options of the build; 2 for an unknown environment."""
    try:
        environment = named(sys.argv[1] if len(sys.argv) > 1 else None)
    except UnknownEnvironment as error:
        print(error, file=sys.stderr)
        return 2
    print(f"--python {environment.python} --arch {environment.architecture}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
