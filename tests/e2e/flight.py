"""The dev environment in an emulator. What happens is told on the terminal: `make e2e` shows it."""

import json
import platform
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3
import httpx
from botocore.config import Config

from tests.services import tools
from tests.services.cdk import Cdk
from tests.services.ministack import ACCOUNT, REGION, Ministack, credentials

ROOT = Path(__file__).parents[2]
STACK = "cragside-dev-service"
CORPUS = ROOT / "layers" / "core" / "python" / "cragside" / "entrypoints" / "samples" / "corpus"
_ARCHITECTURES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}
ARCHITECTURE = _ARCHITECTURES[platform.machine().lower()]


SAID: list[str] = []


def say(line: str) -> None:
    """One line for whoever looks on."""
    SAID.append(line)
    print(line, flush=True)


def timed(what: str, doing: Callable[[], object]) -> None:
    """Do it and say how long it took."""
    began = time.monotonic()
    doing()
    say(f"{what}: {time.monotonic() - began:.1f} s")


@dataclass
class Flight:
    """The stack from bootstrap to destruction, in a folder for what it leaves behind."""

    emulator: Ministack
    folder: Path
    outputs: dict[str, str] = field(default_factory=dict)

    @cached_property
    def context(self) -> dict[str, str]:
        """Return the deployment in place of dev's: this machine's processor and Python, and a fresh store."""
        knowledge = str(self.folder / "knowledge")
        return {
            "env": "dev",
            "emulated": "true",
            "python": self.emulator.minor,
            "architecture": ARCHITECTURE,
            "knowledge": knowledge,
        }

    @cached_property
    def cdk(self) -> Cdk:
        """The CDK's command line, led to the emulator."""
        return Cdk(credentials(self.folder, self.emulator.url), self.folder / "assembly")

    def prepare(self) -> None:
        """Bake the demo's store and build the layers."""
        bake = [
            str(Path(sys.executable).with_name("cragside")),
            "bake",
            str(CORPUS),
            "--out",
            self.context["knowledge"],
        ]
        timed("cragside bake, the demo's documents", lambda: tools.run(bake))
        self.build_layers()

    def build_layers(self) -> None:
        """Build the layers for the emulator's Python."""
        python = self.emulator.minor
        build = [sys.executable, "-m", "layers.lightrag.build", "--python", python, "--arch", ARCHITECTURE]
        timed(f"layers for Python {python} on {ARCHITECTURE}", lambda: tools.run(build, cwd=ROOT, seconds=600))

    def deploy(self) -> None:
        """Bootstrap the account and deploy dev."""
        written = self.folder / "outputs.json"
        bootstrap = ["bootstrap", f"aws://{ACCOUNT}/{REGION}", "--app", ""]  # without synthesising ours
        deploy = ["deploy", STACK, "--require-approval", "never", "--outputs-file", str(written)]
        timed("cdk bootstrap", lambda: self.cdk(*bootstrap, context=self.context))
        timed(f"cdk deploy {STACK}", lambda: self.cdk(*deploy, context=self.context))
        self.outputs = json.loads(written.read_text())[STACK]
        for name, value in self.outputs.items():
            say(f"  {name}: {value}")

    def destroy(self) -> None:
        """Take dev down."""
        destroy = ["destroy", STACK, "--force"]
        timed(f"cdk destroy {STACK}", lambda: self.cdk(*destroy, context=self.context))

    def client(self, service: str) -> Any:
        """AWS' SDK for a service of the emulator."""
        session = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name=REGION)
        # A call that is sent again does its work again. A function's first call takes long on a busy machine.
        config = Config(read_timeout=300, retries={"total_max_attempts": 1})
        return session.client(service, endpoint_url=self.emulator.url, config=config)

    def left(self) -> dict[str, list[Any]]:
        """List the resources of the account without the CDK's own."""
        stacks = self.client("cloudformation").list_stacks()["StackSummaries"]
        roles = [role["RoleName"] for role in self.client("iam").list_roles()["Roles"]]
        buckets = [bucket["Name"] for bucket in self.client("s3").list_buckets()["Buckets"]]
        return {
            "stacks": [
                stack["StackName"]
                for stack in stacks
                if stack["StackStatus"] != "DELETE_COMPLETE" and stack["StackName"] != "CDKToolkit"
            ],
            "APIs": self.client("apigatewayv2").get_apis()["Items"],
            "functions": self.client("lambda").list_functions()["Functions"],
            "layers": self.client("lambda").list_layers()["Layers"],
            "event sources": self.client("lambda").list_event_source_mappings()["EventSourceMappings"],
            "rules": self.client("events").list_rules()["Rules"],
            "queues": self.client("sqs").list_queues().get("QueueUrls", []),
            "buckets": [name for name in buckets if not name.startswith("cdk-")],
            "networks": [vpc for vpc in self.client("ec2").describe_vpcs()["Vpcs"] if not vpc.get("IsDefault")],
            "secrets": self.client("secretsmanager").list_secrets()["SecretList"],
            "log groups": self.client("logs").describe_log_groups()["logGroups"],
            "roles": [name for name in roles if not name.startswith("cdk-")],
        }

    def drifts(self, stack: str) -> dict[str, str]:
        """Return the changes that were made by hand, by the type of the resource."""
        client = self.client("cloudformation")
        found = client.detect_stack_drift(StackName=stack)["StackDriftDetectionId"]
        told = client.describe_stack_drift_detection_status(StackDriftDetectionId=found)["StackDriftStatus"]
        each = client.describe_stack_resource_drifts(StackName=stack)["StackResourceDrifts"]
        changed = {
            one["ResourceType"]: one["StackResourceDriftStatus"]
            for one in each
            if one["StackResourceDriftStatus"] not in ("IN_SYNC", "NOT_CHECKED")
        }
        assert (told == "DRIFTED") is bool(changed), told
        return changed

    @cached_property
    def token(self) -> str:
        """Return the value of the secret."""
        secret = self.client("secretsmanager").get_secret_value(SecretId=self.outputs["TokenSecret"])
        return str(secret["SecretString"])

    def call(self, method: str, path: str, *, token: str | None = None, body: Any = None) -> httpx.Response:
        """A request to the API, under the name that the emulator knows it by."""
        (api,) = re.findall(r"https://(\w+)\.execute-api\.", self.outputs["Endpoint"])
        headers = {"Host": f"{api}.execute-api.localhost"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        with httpx.Client(trust_env=False, timeout=300) as client:
            return client.request(method, self.emulator.url + path, headers=headers, json=body)
