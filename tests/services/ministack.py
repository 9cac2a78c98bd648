"""An AWS emulator from PyPI, which takes CDK's deployments and runs the functions for real, layers included.

It runs as a process of its own, in an environment of its own, on the Python that functions shall have: what is in that
environment is visible to them, so there is nothing in it but the emulator and what Lambda's runtime brings.
"""

import os
from pathlib import Path

from tests.services import tools
from tests.services.server import Server
from tests.services.tools import Unavailable
from tools import toolchain

VERSION = "1.5.33"
REGION = "us-east-1"
ACCOUNT = "000000000000"

REQUIREMENTS = (
    f"ministack=={VERSION}",
    "boto3==1.43.106",  # Lambda's runtime brings it, and what SnapStart's hooks need
    "botocore==1.43.106",
    "snapshot-restore-py==1.0.0",
    "defusedxml==0.7.1",
    "graphql-core==3.2.12",
    "h11==0.16.0",
    "h2==4.4.1",
    "hpack==4.2.0",
    "hypercorn==0.18.0",
    "hyperframe==6.1.0",
    "jmespath==1.1.0",
    "jsonata-python==0.7.1",
    "priority==2.0.0",
    "python-dateutil==2.9.0.post0",
    "PyYAML==6.0.3",
    "s3transfer==0.19.3",
    "six==1.17.0",
    "urllib3==2.8.0",
    "wsproto==1.3.2",
)
_MINORS = ("3.12", "3.13", "3.11")


def interpreter() -> tuple[str, str]:
    """The minor version that functions run on here, and its interpreter: Lambda's default if there is one."""
    for minor in _MINORS:
        found = toolchain.interpreter(minor)
        if found:
            return minor, found
    raise Unavailable(f"No Python of {', '.join(_MINORS)} was found.")


def credentials(home: Path, url: str) -> dict[str, str]:
    """Variables for tools of AWS that lead to the emulator and nowhere else, whatever the machine has configured."""
    return {
        "HOME": str(home),
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL": url,
    }


class Ministack(Server):
    """The emulator. Raises `Unavailable` from `start`."""

    def __init__(self) -> None:
        super().__init__("ministack", "/_ministack/health")
        self.minor, self._interpreter = interpreter()

    def version(self) -> str:
        """The emulator's version."""
        return f"ministack {VERSION}"

    def command(self) -> list[str]:
        """The launcher, on the emulator's own Python."""
        folder = tools.cache(f"ministack-py{self.minor}")
        with tools.exclusive(folder):
            python = tools.environment(folder, REQUIREMENTS, self._interpreter)
        # -P: this folder has a module named like the emulator's.
        return [str(python), "-P", str(Path(__file__).with_name("ministack_launcher.py"))]

    def environment(self) -> dict[str, str]:
        """Nothing of this machine's AWS, and only what is used."""
        return {
            "PATH": os.environ["PATH"],
            "TMPDIR": str(self.home),
            **credentials(self.home, self.url),
            "GATEWAY_PORT": str(self.port),
            "BIND_HOST": "127.0.0.1",
            "ENFORCED": str(self.home / "enforced"),
            "CALLS": str(self.home / "calls"),
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
            # It would look for containers of its own, and end them.
            "DOCKER_HOST": f"unix://{self.home}/no-docker.sock",
        }

    def enforce(self, yes: bool) -> None:
        """Have IAM's policies in force, or not. They are not at the start."""
        file = self.home / "enforced"
        file.touch() if yes else file.unlink(missing_ok=True)

    def calls(self) -> set[tuple[str, str]]:
        """The callers' ARNs and the actions of the calls while policies were in force."""
        file = self.home / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        return {(caller, action) for caller, _, action in (line.partition(" ") for line in lines)}

    def stop(self) -> None:
        """End it and the functions, which are processes of its group, at once."""
        self.kill()
