"""Refuses to build for `sam local` where it would find no container engine. Runs on SAM's own Python, which has SAM."""

import sys

from samcli.commands.exceptions import UserException  # type: ignore[import-not-found]
from samcli.local.docker.container_client_factory import ContainerClientFactory  # type: ignore[import-not-found]

try:
    ContainerClientFactory.create_client()
except UserException as error:
    print(f"{error} Start it, or say in DOCKER_HOST where it is.", file=sys.stderr)
    sys.exit(2)
