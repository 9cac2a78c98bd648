"""A bucket of generations and its queue: requests that read and change, and the function that writes."""

from collections.abc import Sequence
from typing import Any

import boto3
import httpx

from cragside.adapters.aws.versions import S3VersionedStore
from cragside.application.inbox import Inbox
from cragside.bootstrap import Container
from cragside.entrypoints.aws_lambda.publishing import PublishFunction
from cragside.entrypoints.http.app import create_app
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.settings import load_settings
from tests.knowledge import answer_of
from tests.queues import make_fifo

BUCKET, PREFIX = "knowledge", "kb"
OTTER = "Sea otters eat urchins in the kelp forest off Monterey, and hold hands while they sleep."
KELP = "Giant kelp grows sixty centimetres a day in cold water off California, faster than any other plant."
ASKED_OTTER, ASKED_KELP = "/rag What do sea otters eat?", "/rag How fast does giant kelp grow off California?"


class Requests:
    """A function for requests, as a client sees it."""

    def __init__(self, container: Container) -> None:
        self.container = container
        transport = httpx.ASGITransport(app=create_app(container), raise_app_exceptions=False)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")

    async def add(self, name: str, text: str, **fields: Any) -> dict[str, Any]:
        answer = await self.http.post("/v1/documents", json={"name": name, "text": text, **fields})
        (document,) = answer_of(answer, 202)["documents"]
        return dict(document)

    async def document(self, document_id: str, workspace: str = "default") -> dict[str, Any]:
        answer = await self.http.get(f"/v1/documents/{document_id}", params={"workspace": workspace})
        return dict(answer_of(answer))

    async def titles(self, question: str, workspace: str = "default") -> list[str]:
        """The titles of the evidence for a question."""
        answer = await self.http.post("/v1/enrich", json={"prompt": question, "workspace": workspace})
        context = answer_of(answer)["metadata"]["rag_context"]
        assert "knowledge_base" not in {each["component"] for each in context["degraded"]}, context["degraded"]
        return [each["title"] for each in context["documents"]]


class World:
    """A versioned bucket and a FIFO queue, in the moto that runs."""

    def __init__(self) -> None:
        self.s3, self.sqs = boto3.client("s3"), boto3.client("sqs")
        self.s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
        self.s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
        self.url = make_fifo(self.sqs)
        self.objects = S3VersionedStore(BUCKET, PREFIX)
        self._made: list[Requests] = []

    def container(self, clock: Clock = SYSTEM_CLOCK, **settings: str) -> Container:
        given = {
            "RAG_GENERATIONS": f"s3://{BUCKET}/{PREFIX}",
            "RAG_GENERATION_SECONDS": "0",
            "RAG_QUEUE_URL": self.url,
            "RAG_UPLOADS": f"s3://{BUCKET}/uploads",
            **settings,
        }
        return Container(load_settings(given), clock=clock)

    def requests(self, clock: Clock = SYSTEM_CLOCK, **settings: str) -> Requests:
        self._made.append(Requests(self.container(clock, **settings)))
        return self._made[-1]

    def function(self, clock: Clock = SYSTEM_CLOCK, **settings: str) -> PublishFunction:
        return PublishFunction(self.container(clock, **settings))

    @property
    def inbox(self) -> Inbox:
        inbox = self.container().inbox
        assert inbox is not None
        return inbox

    def records(self) -> list[dict[str, Any]]:
        """Messages as Lambda takes them."""
        received = self.sqs.receive_message(
            QueueUrl=self.url, MaxNumberOfMessages=10, AttributeNames=["All"], VisibilityTimeout=600
        )
        return [
            {
                "messageId": each["MessageId"],
                "receiptHandle": each["ReceiptHandle"],
                "body": each["Body"],
                "attributes": each["Attributes"],
            }
            for each in received.get("Messages", [])
        ]

    def take(self, records: Sequence[dict[str, Any]]) -> None:
        """Delete messages, as Lambda does with those that were not reported."""
        for each in records:
            self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=each["receiptHandle"])

    async def write(self, seconds: float = 60, **settings: str) -> list[dict[str, Any]]:
        """Call the writer until no message is left. Return those that come again."""
        while records := self.records():
            again = await self.function(**settings)._looked(records, seconds)
            self.take([each for each in records if each not in again])
            if again:
                return again
        return []

    def keys(self, prefix: str = "") -> list[str]:
        """Names of the objects below a prefix."""
        found = self.s3.list_objects_v2(Bucket=BUCKET, Prefix=f"{PREFIX}/{prefix}").get("Contents", [])
        return [each["Key"].removeprefix(f"{PREFIX}/") for each in found]

    def generations(self, workspace: str = "default") -> list[str]:
        """The numbers of the kept generations, newest first."""
        key = f"{PREFIX}/ws/{workspace}/store.sqlite3.gz"
        versions = self.s3.list_object_versions(Bucket=BUCKET, Prefix=key).get("Versions", [])
        heads = [self.s3.head_object(Bucket=BUCKET, Key=key, VersionId=each["VersionId"]) for each in versions]
        return [each["Metadata"]["generation"] for each in heads]

    async def close(self) -> None:
        for each in self._made:
            await each.http.aclose()
            await each.container.close()
