"""A dev whose store documents can be brought to: an emulator of AWS, and a real PostgreSQL and Neo4j."""

import json
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import httpx
from flight import ARCHITECTURE, Flight, timed

from infra.config import Writable, named
from tests.services.cdk import Cdk
from tests.services.ministack import ACCOUNT, REGION, Ministack, credentials
from tests.services.neo4j_server import Neo4j

STACKS = ("cragside-dev-knowledge", "cragside-dev-service")
_APP = "python -m tests.e2e.writable_app"
_PATIENCE = 120.0

T = TypeVar("T")


class WritableFlight(Flight):
    """The stacks from bootstrap to destruction. `postgres_uri` is the store's address; its graph is in Neo4j."""

    def __init__(self, emulator: Ministack, folder: Path, postgres_uri: str, neo4j: Neo4j) -> None:
        super().__init__(emulator, folder)
        self._postgres_uri = postgres_uri
        self._neo4j = neo4j
        self.asked_to_sweep = 0

    @cached_property
    def context(self) -> dict[str, str]:
        """The environment, in a file."""
        environment = named("dev").changed(
            emulated=True,
            observability="full",
            python=self.emulator.minor,
            architecture=ARCHITECTURE,
            knowledge=Writable(sweep_minutes=1).model_dump(),
            network={"s3_prefix_list_id": "pl-0123456789abcdef0"},
            operations={"alarms": {"email": "operator@example.com"}},
            servers=self._servers(),
        )
        file = self.folder / "environment.json"
        file.write_text(environment.model_dump_json())
        return {"file": str(file)}

    @cached_property
    def cdk(self) -> Cdk:
        """The CDK's command line, led to the emulator."""
        return Cdk(credentials(self.folder, self.emulator.url), self.folder / "assembly", app=_APP)

    def prepare(self) -> None:
        """Build the layers."""
        self.build_layers()

    def deploy(self) -> None:
        """Bootstrap the account, deploy all stacks, make the tables."""
        written = self.folder / "outputs.json"
        bootstrap = ["bootstrap", f"aws://{ACCOUNT}/{REGION}", "--app", ""]  # without synthesising ours
        timed("cdk bootstrap", lambda: self.cdk(*bootstrap, context=self.context))
        deploy = ["deploy", "--all", "--require-approval", "never", "--outputs-file", str(written)]
        timed("cdk deploy --all", lambda: self.cdk(*deploy, context=self.context))
        for outputs in json.loads(written.read_text()).values():
            self.outputs |= outputs

    def destroy(self) -> None:
        """Take all stacks down."""
        timed("cdk destroy --all", lambda: self.cdk("destroy", "--all", "--force", context=self.context))

    def function(self, name: str) -> str:
        """The name of a function, of which the construct's is a part."""
        names = [each["FunctionName"] for each in self.client("lambda").list_functions()["Functions"]]
        (found,) = [each for each in names if name in each]
        return str(found)

    def renew(self) -> None:
        """Have new execution environments answer, which have read nothing yet."""
        client = self.client("lambda")
        for name in map(self.function, ("Enrich", "Index")):
            client.update_function_configuration(FunctionName=name, Description=f"renewed at {time.time()}")
            version = client.publish_version(FunctionName=name)["Version"]
            client.update_alias(FunctionName=name, Name="live", FunctionVersion=version)

    def wait_until_ready(self) -> None:
        """Wait for an answer to a request with the token. A failure says what the functions logged."""
        try:
            until(lambda: self.call("GET", "/v1/workspaces", token=self.token).status_code == 200, "it is ready")
        except AssertionError as error:
            raise AssertionError("\n".join([str(error), *self.logged("ERROR")])) from error

    def logged(self, level: str) -> list[str]:
        """The lines of the functions' logs that have a level."""
        client = self.client("logs")
        groups = [each["logGroupName"] for each in client.describe_log_groups()["logGroups"]]
        events = [event for each in groups for event in client.filter_log_events(logGroupName=each)["events"]]
        return [event["message"] for event in events if f'"level":"{level}"' in event["message"]]

    def swept(self) -> int:
        """Count the sweeps that the functions logged."""
        return sum('"message":"swept"' in line for line in self.logged("INFO"))

    def permissions(self, name: str) -> dict[str, dict[str, set[str]]]:
        """The actions that each inline policy of a function's role allows, by role and policy."""
        client = self.client("iam")
        role = self.client("lambda").get_function(FunctionName=self.function(name))["Configuration"]["Role"]
        role = role.rpartition("/")[2]
        found: dict[str, set[str]] = {}
        for policy in client.list_role_policies(RoleName=role)["PolicyNames"]:
            document = client.get_role_policy(RoleName=role, PolicyName=policy)["PolicyDocument"]
            actions = [each["Action"] for each in document["Statement"]]
            found[policy] = {action for each in actions for action in ([each] if isinstance(each, str) else each)}
        return {role: found}

    def job(self, event: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of the index function to an event."""
        name = self.function("Index")
        answer = self.client("lambda").invoke(FunctionName=name, Qualifier="live", Payload=json.dumps(event))
        body: dict[str, Any] = json.loads(answer["Payload"].read())
        assert "FunctionError" not in answer, body
        self.asked_to_sweep += body.get("swept", False)
        return body

    def upload(self, content: bytes, name: str) -> str:
        """The id of a document that is brought by way of the bucket."""
        offer = self.call("POST", "/v1/documents/uploads", token=self.token, body={})
        assert offer.status_code == 201, offer.text
        form = offer.json()
        sent = httpx.post(form["url"], data=form["fields"], files={"file": content}, timeout=60, trust_env=False)
        assert sent.status_code == 204, sent.text
        added = self.call("POST", "/v1/documents", token=self.token, body={"upload": form["id"], "name": name})
        assert added.status_code == 202, added.text
        return str(added.json()["documents"][0]["id"])

    def ask(self, question: str) -> dict[str, Any]:
        """An enriched request."""
        answer = self.call("POST", "/v1/enrich", token=self.token, body={"prompt": f"/rag {question}"})
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body

    def evidence(self, question: str) -> dict[str, Any]:
        """Return the answer to a request once its evidence is complete. A busy Neo4j takes long at first."""

        def whole() -> dict[str, Any] | None:
            found: dict[str, Any] = self.ask(question)["metadata"]["rag_context"]
            return None if found["degraded"] else found

        return until(whole, "the evidence is whole") or {}

    def status(self, document: str) -> str:
        """Return the progress of a document."""
        answer = self.call("GET", f"/v1/documents/{document}", token=self.token)
        return str(answer.json()["status"]) if answer.status_code == 200 else str(answer.status_code)

    def remove_secrets(self) -> None:
        """Remove those of the servers, which no stack has."""
        for name in ("postgres", "neo4j"):
            self.client("secretsmanager").delete_secret(SecretId=name, ForceDeleteWithoutRecovery=True)

    def _servers(self) -> dict[str, str]:
        username, password = self._neo4j.auth
        return {
            "postgres_uri_secret_arn": self._secret("postgres", self._postgres_uri),
            "neo4j_uri": self._neo4j.address,
            "neo4j_username": username,
            "neo4j_password_secret_arn": self._secret("neo4j", password),
        }

    def _secret(self, name: str, text: str) -> str:
        return str(self.client("secretsmanager").create_secret(Name=name, SecretString=text)["ARN"])


def until(holds: Callable[[], T], what: str, *, seconds: float = _PATIENCE) -> T:
    """Wait until something is true. Returns it."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.2)
    return found
