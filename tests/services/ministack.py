"""An AWS emulator from PyPI, which takes CDK's deployments and runs the functions for real, layers included.

It runs as a process of its own, in an environment of its own, on the Python that functions shall have: what is in that
environment is visible to them, so there is nothing in it but the emulator and what Lambda's runtime brings.
"""

import os
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.services import tools
from tests.services.tools import Unavailable

VERSION = "1.5.33"
REGION = "us-east-1"
ACCOUNT = "000000000000"

_REQUIREMENTS = (
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
_START_SECONDS = 60.0
_MINORS = ("3.12", "3.13", "3.11")
_FIND_PYTHON = Path(__file__).parents[2] / "tools" / "find_python.sh"


def interpreter() -> tuple[str, str]:
    """The minor version that functions run on here, and its interpreter: Lambda's default if there is one."""
    for minor in _MINORS:
        found = tools.run(["sh", str(_FIND_PYTHON), minor]).strip()
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


class Ministack:
    """The emulator on a free loopback port. Raises `Unavailable` from `start`."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="cragside-ministack-")
        self._process: subprocess.Popen[bytes] | None = None
        self.minor, self._interpreter = interpreter()
        self.port = tools.free_port()

    @property
    def url(self) -> str:
        """Where the services of AWS are."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """What it and the functions have written."""
        return (Path(self._folder.name) / "log").read_text(errors="replace")

    def start(self) -> None:
        """Start and wait until it answers."""
        folder = tools.cache(f"ministack-py{self.minor}")
        with tools.exclusive(folder):
            python = tools.environment(folder, _REQUIREMENTS, self._interpreter)
        home = Path(self._folder.name)
        with (home / "log").open("wb") as log:
            self._process = subprocess.Popen(
                # -P: this folder has a module named like the emulator's.
                [str(python), "-P", str(Path(__file__).with_name("ministack_launcher.py"))],
                env={
                    "PATH": os.environ["PATH"],
                    "TMPDIR": str(home),
                    **credentials(home, self.url),
                    "GATEWAY_PORT": str(self.port),
                    "BIND_HOST": "127.0.0.1",
                    "IOT_MTLS_ENABLED": "0",
                    "SFTP_ENABLED": "0",
                    # It would look for containers of its own, and end them.
                    "DOCKER_HOST": f"unix://{home}/no-docker.sock",
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._await()

    def stop(self) -> None:
        """End it and the functions at once."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(15)
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._folder.cleanup()

    def _await(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process is not None and self._process.poll() is None:
            with suppress(OSError), urllib.request.urlopen(f"{self.url}/_ministack/health", timeout=2):
                return
            time.sleep(0.1)
        log = self.log
        self.stop()
        raise Unavailable(f"ministack did not come up: {log.strip()[-400:]}")
