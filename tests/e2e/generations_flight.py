"""Two functions on a bucket and a queue in an emulator of AWS: documents can be brought, and there is no database."""

import io
import json
import zipfile
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
from flight import ARCHITECTURE, ROOT, Flight, timed
from killed_writer import record

BUCKET = "knowledge"
LAYERS = {"enrich": ("core", "lightrag", "parsers"), "index": ("core", "lightrag")}
TOKEN = "right-of-the-flight"
_ROLE = "arn:aws:iam::000000000000:role/function"


class GenerationsFlight(Flight):
    """An account with the functions `enrich` and `index`, whose layers and handlers are those that are deployed."""

    def deploy(self) -> None:
        """Make bucket, queue and functions, and have messages call the one that indexes."""
        timed("bucket, queue and functions", self._deploy)

    def destroy(self) -> None:
        """Remove what was made."""
        functions = self.client("lambda")
        for each in functions.list_event_source_mappings()["EventSourceMappings"]:
            functions.delete_event_source_mapping(UUID=each["UUID"])
        for name in ("enrich", "index"):
            functions.delete_function(FunctionName=name)
        for layer in LAYERS["enrich"]:
            for each in functions.list_layer_versions(LayerName=layer)["LayerVersions"]:
                functions.delete_layer_version(LayerName=layer, VersionNumber=each["Version"])
        self.client("sqs").delete_queue(QueueUrl=self._queue)
        bucket = self.client("s3")
        listed = bucket.list_object_versions(Bucket=BUCKET)
        for each in (*listed.get("Versions", ()), *listed.get("DeleteMarkers", ())):
            bucket.delete_object(Bucket=BUCKET, Key=each["Key"], VersionId=each["VersionId"])
        bucket.delete_bucket(Bucket=BUCKET)
        logs = self.client("logs")
        for group in logs.describe_log_groups()["logGroups"]:
            logs.delete_log_group(logGroupName=group["logGroupName"])

    def objects(self) -> list[str]:
        """The names of the objects in the bucket."""
        return [each["Key"] for each in self.client("s3").list_objects_v2(Bucket=BUCKET).get("Contents", ())]

    def request(self, method: str, path: str, body: Any = None, *, query: str = "") -> tuple[int, Any]:
        """Send a request to the function as an HTTP API does. Return status and body."""
        event = {
            "version": "2.0",
            "rawPath": path,
            "rawQueryString": query,
            "headers": {"host": "localhost", "content-type": "application/json", "authorization": f"Bearer {TOKEN}"},
            "requestContext": {"http": {"method": method, "path": path, "sourceIp": "127.0.0.1"}},
            "body": None if body is None else json.dumps(body),
            "isBase64Encoded": False,
        }
        answer = self.client("lambda").invoke(FunctionName="enrich", Payload=json.dumps(event))
        told = json.loads(answer["Payload"].read())
        assert "FunctionError" not in answer, told
        return told["statusCode"], json.loads(told.get("body") or "null")

    def upload(self, content: bytes, name: str) -> str:
        """Bring a document by way of the bucket. Return its id."""
        status, form = self.request("POST", "/v1/documents/uploads", {})
        assert status == 201, form
        sent = httpx.post(form["url"], data=form["fields"], files={"file": content}, timeout=60, trust_env=False)
        assert sent.status_code == 204, sent.text
        status, added = self.request("POST", "/v1/documents", {"upload": form["id"], "name": name})
        assert status == 202, added
        return str(added["documents"][0]["id"])

    def logged(self) -> list[str]:
        """The lines of the functions' logs."""
        client = self.client("logs")
        groups = [each["logGroupName"] for each in client.describe_log_groups()["logGroups"]]
        return [event["message"] for each in groups for event in client.filter_log_events(logGroupName=each)["events"]]

    @property
    def variables(self) -> dict[str, str]:
        """The settings that both functions have."""
        return {
            "RAG_GENERATIONS": f"s3://{BUCKET}/kb",
            "RAG_GENERATION_SECONDS": "0",
            "RAG_QUEUE_URL": self._queue,
        }

    def call_writer(self, workspace: str) -> dict[str, Any]:
        """Call the function that writes, beside the queue. Return its answer."""
        answer = self.client("lambda").invoke(
            FunctionName="index", Payload=json.dumps({"Records": [record(workspace)]})
        )
        return dict(json.loads(answer["Payload"].read()))

    def have_messages_call(self, yes: bool) -> None:
        """Have messages of the queue call the function that writes, or leave them."""
        functions = self.client("lambda")
        for each in functions.list_event_source_mappings()["EventSourceMappings"]:
            functions.update_event_source_mapping(UUID=each["UUID"], Enabled=yes)

    @cached_property
    def _queue(self) -> str:
        attributes = {"FifoQueue": "true", "VisibilityTimeout": "120"}
        return str(self.client("sqs").create_queue(QueueName="index.fifo", Attributes=attributes)["QueueUrl"])

    def _deploy(self) -> None:
        bucket = self.client("s3")
        bucket.create_bucket(Bucket=BUCKET)
        bucket.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
        layers = {name: self._layer(name) for name in LAYERS["enrich"]}
        for name, extra in (("enrich", {"RAG_UPLOADS": f"s3://{BUCKET}/uploads"}), ("index", {})):
            variables = {"RAG_API_TOKEN": TOKEN, **self.variables, **extra}
            self.client("logs").create_log_group(logGroupName=f"/aws/lambda/{name}")
            self.client("lambda").create_function(
                FunctionName=name,
                Runtime=f"python{self.emulator.minor}",
                Handler="handler.handler",
                Role=_ROLE,
                Code={"ZipFile": _zip(ROOT / "functions" / name)},
                Layers=[layers[each] for each in LAYERS[name]],
                MemorySize=1769,
                Timeout=100,
                Environment={"Variables": variables},
            )
        asked = {"QueueUrl": self._queue, "AttributeNames": ["QueueArn"]}
        arn = self.client("sqs").get_queue_attributes(**asked)["Attributes"]["QueueArn"]
        self.client("lambda").create_event_source_mapping(
            EventSourceArn=arn, FunctionName="index", BatchSize=10, FunctionResponseTypes=["ReportBatchItemFailures"]
        )

    def _layer(self, name: str) -> str:
        folder = ROOT / "build" / "layers" / f"{name}-{self.emulator.minor}-{ARCHITECTURE}"
        made = self.client("lambda").publish_layer_version(LayerName=name, Content={"ZipFile": _zip(folder)})
        return str(made["LayerVersionArn"])


def _zip(folder: Path) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.relative_to(folder).parts[:1]:
                packed.write(path, path.relative_to(folder))
    return held.getvalue()
