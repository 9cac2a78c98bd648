"""The store of functions: baked, in a layer or a bucket; or written, in generations of a bucket or on PostgreSQL."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aws_cdk as cdk
from aws_cdk import Aws, Duration, Fn, RemovalPolicy
from aws_cdk.aws_events import Rule, RuleTargetInput, Schedule
from aws_cdk.aws_events_targets import LambdaFunction
from aws_cdk.aws_iam import Policy, PolicyStatement, Role
from aws_cdk.aws_lambda import Code, EventSourceMapping, LayerVersion
from aws_cdk.aws_s3 import BlockPublicAccess, Bucket, BucketEncryption, CorsRule, HttpMethods, LifecycleRule
from aws_cdk.aws_sqs import DeadLetterQueue, DeduplicationScope, FifoThroughputLimit, Queue, QueueEncryption
from constructs import Construct

from infra.artifacts import Artifacts
from infra.config import Environment, Generations, Indexed, KnowledgeBucket, Writable
from infra.function import Placement, PythonFunction, layers_of, readable
from infra.stack import EnvironmentStack, acknowledge

_FOLDER = "knowledge"
# Folders that a function may write to: with no store, and for what a store on PostgreSQL keeps beside it.
_NO_STORE, _HOME = "/tmp/knowledge", "/tmp/cragside"  # noqa: S108
_ORIGINS = "RAG_ALLOW_ORIGINS"
_UPLOADS, _UPLOAD_BUCKET, _STORE_BUCKET = "in", "UploadBucket", "StoreBucket"
# Below its prefix, a bucket of generations has stores, changes that wait, and changes that were given up.
_PREFIX, _STORES, _INBOX, _REFUSED = "knowledge", "ws", "in", "refused"
# The function replaces a message that came eight times, but not while the database is away: docs/indexing.md.
_RECEIVES = 100
# SQS gives a function at most so many messages of a FIFO queue at once.
_BATCH = 10


@dataclass(frozen=True, slots=True)
class Store:
    """The variables, layers and permissions that the function of requests needs to open a store."""

    variables: Mapping[str, str]
    layers: tuple[LayerVersion, ...] = ()
    grant: Callable[[Role], None] = field(default=lambda _: None)


def baked_store(scope: Construct, environment: Environment, artifacts: Artifacts) -> Store:
    """Return a store that a deployment brings along: a layer, objects in a bucket, or none."""
    knowledge, folder = environment.knowledge, artifacts.knowledge
    if folder is not None:
        code = Code.from_asset(str(folder), bundling=readable(folder, _FOLDER))
        layer = LayerVersion(scope, "Knowledge", code=code, description="cragside: a baked store")
        return Store({"RAG_HOME": f"/opt/{_FOLDER}"}, (layer,))
    if not isinstance(knowledge, KnowledgeBucket):
        return Store({"RAG_HOME": _NO_STORE})  # every `/rag` prompt finds an empty knowledge base
    place = knowledge.uri.removeprefix("s3://")

    def grant(role: Role) -> None:
        objects = f"arn:{Aws.PARTITION}:s3:::{place}/*"
        role.add_to_policy(PolicyStatement(actions=["s3:GetObject"], resources=[objects]))
        acknowledge(
            role,
            f"AwsSolutions::AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:s3:::{place}/*]",
            "The manifest names the files of the store; all of them lie under this prefix.",
        )

    return Store({"RAG_HOME": knowledge.uri, "RAG_HOME_SHA256": knowledge.sha256}, grant=grant)


class KnowledgeStack(EnvironmentStack):
    """Outputs: `UploadBucket`, `StoreBucket` of generations, `IndexFunction`; URLs of `TaskQueue` and `DeadLetters`."""

    def __init__(
        self,
        scope: Construct,
        environment: Environment,
        knowledge: Indexed,
        artifacts: Artifacts,
        placement: Placement | None,
    ) -> None:
        super().__init__(
            scope, "knowledge", environment, f"knowledge that documents can be brought to ({environment.name})"
        )
        self._knowledge = knowledge
        self._uploads = self._upload_bucket()
        self._stores = self._store_bucket(knowledge.generations) if isinstance(knowledge, Generations) else None
        self.dead, self.tasks = self._queues()
        self.index = PythonFunction(
            self,
            "Index",
            code=artifacts.index,
            layers=layers_of(self, environment, artifacts.index_layers),
            memory_mb=knowledge.index_memory_mb,
            tmp_mb=knowledge.index_tmp_mb,
            timeout_seconds=knowledge.index_timeout_seconds,
            variables=self._variables,
            placement=placement,
        )
        processing = ("ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "ReceiveMessage", "SendMessage")
        self.index.allow([f"sqs:{action}" for action in processing], [self.tasks.queue_arn])
        if self._stores is not None:
            changes = (_INBOX, _REFUSED)
            rights = {"GetObject": (_STORES, *changes), "PutObject": (_STORES, *changes), "DeleteObject": changes}
            self._allow_stores(self.index.role, self._stores.bucket_name, rights)
        self._allow_key_for(self.index.role, "sqs", "secretsmanager", *(["s3"] if self._stores else []))
        self._process()
        self._sweep()
        for key, value, description in (
            ("IndexFunction", self.index.function.function_name, "The function that indexes; its alias is live."),
            (_UPLOAD_BUCKET, self._uploads.bucket_name, "The bucket of large files."),
            (_STORE_BUCKET, self._stores.bucket_name if self._stores else None, "The bucket of generations."),
            ("TaskQueue", self.tasks.queue_url, "The queue that calls it."),
            ("DeadLetters", self.dead.queue_url, "Messages that came too often."),
        ):
            if value is not None:
                cdk.CfnOutput(self, key, value=value, description=description)

    @property
    def for_requests(self) -> Store:
        """Resources beside the servers that functions need to store documents and answer from them."""
        uploads = {"RAG_UPLOADS": f"s3://{self._uploads.bucket_name}/{_UPLOADS}"}
        return Store({**self._variables, **uploads}, grant=self._grant)

    @property
    def _variables(self) -> dict[str, str]:
        knowledge, queue = self._knowledge, {"RAG_QUEUE_URL": self.tasks.queue_url}
        if self._stores is not None:
            return {"RAG_GENERATIONS": f"s3://{self._stores.bucket_name}/{_PREFIX}", **queue}
        if not isinstance(knowledge, Writable):
            raise TypeError("a store is on PostgreSQL or in a bucket")
        return {
            "RAG_HOME": _HOME,
            **dict.fromkeys(("RAG_POSTGRES_CONNECTIONS", "RAG_NEO4J_CONNECTIONS"), str(knowledge.pool)),
            "RAG_INDEX_ATTEMPTS": str(knowledge.attempts),
            "RAG_FETCH_PAGES": str(knowledge.fetch_pages).lower(),
            **queue,
        }

    def _grant(self, role: Role) -> None:
        """Let a role of another stack sign forms, read and remove what was sent, and say that tasks wait."""
        sent = dict.fromkeys(("DeleteObject", "GetObject", "PutObject"), (_UPLOADS,))
        self._allow_objects(role, "Uploads", Fn.get_stack_output(self.stack_name, _UPLOAD_BUCKET), "", sent)
        if self._stores is not None:
            rights = {"GetObject": (_STORES, _INBOX, _REFUSED), "PutObject": (_INBOX,)}
            self._allow_stores(role, Fn.get_stack_output(self.stack_name, _STORE_BUCKET), rights)
        role.add_to_policy(PolicyStatement(actions=["sqs:SendMessage"], resources=[self.tasks.queue_arn]))
        self._allow_key_for(role, "sqs", "s3")

    def _allow_stores(self, role: Role, bucket: str, rights: Mapping[str, Sequence[str]]) -> None:
        self._allow_objects(role, "Stores", bucket, f"{_PREFIX}/", rights)

    def _allow_objects(
        self, role: Role, name: str, bucket: str, prefix: str, rights: Mapping[str, Sequence[str]]
    ) -> None:
        """Let a role do this with objects below the prefixes, and tell missing ones from those that are forbidden."""
        arn = f"arn:{Aws.PARTITION}:s3:::{bucket}"
        below = {each: f"{arn}/{prefix}{each}/*" for prefixes in rights.values() for each in prefixes}
        statements = [
            PolicyStatement(actions=[f"s3:{action}"], resources=[below[each] for each in prefixes])
            for action, prefixes in rights.items()
        ]
        statements.append(PolicyStatement(actions=["s3:ListBucket"], resources=[arn]))
        policy, said = Policy(role, name, roles=[role], statements=statements), self.resolve(bucket)
        shown = f"<{said['Ref']}>" if "Ref" in said else json.dumps(said, separators=(",", ":"))
        for each in below:
            acknowledge(
                policy,
                f"AwsSolutions::AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:s3:::{shown}/{prefix}{each}/*]",
                "Objects have names that come with what they hold; all of them lie under this prefix.",
            )

    def _allow_key_for(self, role: Role, *services: str) -> None:
        self.allow_key(role, *services, actions=("kms:Decrypt", "kms:GenerateDataKey"))

    def _upload_bucket(self) -> Bucket:
        """Files are deleted after a day, which S3 counts from the next midnight UTC: those that were added are read."""
        said = self.environment_config.settings.get(_ORIGINS, "")
        origins = [each.strip() for each in said.split(",") if each.strip()]
        cors = CorsRule(allowed_methods=[HttpMethods.POST], allowed_origins=origins, allowed_headers=["*"])
        day = Duration.days(1)
        return self._bucket(
            "Uploads",
            lifecycle_rules=[LifecycleRule(expiration=day, abort_incomplete_multipart_upload_after=day)],
            cors=[cors] if origins else None,
            # Documents are in the store; here are only files that nobody has added yet.
            removal_policy=RemovalPolicy.DESTROY,
        )

    def _store_bucket(self, generations: int) -> Bucket:
        """Earlier generations stay for 30 days, and so many of them for longer. Changes that were made go in a day."""
        day, month = Duration.days(1), Duration.days(30)
        earlier: dict[str, Any] = {"noncurrent_version_expiration": month, "noncurrent_versions_to_retain": generations}
        gone: dict[str, Any] = {"noncurrent_version_expiration": day, "abort_incomplete_multipart_upload_after": day}
        return self._bucket(
            "Stores",
            versioned=True,
            lifecycle_rules=[
                LifecycleRule(prefix=f"{_PREFIX}/{_STORES}/", abort_incomplete_multipart_upload_after=day, **earlier),
                LifecycleRule(prefix=f"{_PREFIX}/{_INBOX}/", **gone),
                LifecycleRule(prefix=f"{_PREFIX}/{_REFUSED}/", expiration=month, **gone),
            ],
            removal_policy=self.removal,
        )

    def _bucket(self, name: str, **said: Any) -> Bucket:
        """Make a bucket that is private, encrypted, and takes TLS alone."""
        bucket = Bucket(
            Construct(self, name),
            "Bucket",
            encryption=BucketEncryption.KMS if self.key else BucketEncryption.S3_MANAGED,
            encryption_key=self.key,
            bucket_key_enabled=True if self.key else None,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            block_public_access=BlockPublicAccess.BLOCK_ALL,
            **said,
        )
        reason = "Functions alone read and write here; the API's access log has the requests that they serve."
        acknowledge(bucket, "AwsSolutions::AwsSolutions-S1", reason)
        return bucket

    def _queues(self) -> tuple[Queue, Queue]:
        """Make a FIFO queue, encrypted, TLS only, and one in which messages that came too often wait for 14 days."""
        within = Construct(self, "Queue")
        common: dict[str, Any] = {
            "fifo": True,
            "encryption": QueueEncryption.KMS if self.key else QueueEncryption.SQS_MANAGED,
            "encryption_master_key": self.key,
            "enforce_ssl": True,
            "retention_period": Duration.days(14),
            "deduplication_scope": DeduplicationScope.MESSAGE_GROUP,
            "fifo_throughput_limit": FifoThroughputLimit.PER_MESSAGE_GROUP_ID,
            "removal_policy": self.removal,
        }
        dead = Queue(within, "Dead", **common)
        acknowledge(
            dead,
            "Serverless::Serverless-SQSRedrivePolicy",
            "It is the queue of dead letters itself. Tasks are in the database, and an alarm tells of those given up.",
        )
        tasks = Queue(
            within,
            "Tasks",
            visibility_timeout=Duration.seconds(self._knowledge.visibility_seconds),
            dead_letter_queue=DeadLetterQueue(queue=dead, max_receive_count=_RECEIVES),
            **common,
        )
        return dead, tasks

    def _process(self) -> None:
        """Have the function process the queue, so many batches at once. Failures are reported one by one."""
        mapping = EventSourceMapping(
            self,
            "Tasks",
            target=self.index.live,
            event_source_arn=self.tasks.queue_arn,
            batch_size=_BATCH,
            max_concurrency=self._knowledge.index_concurrency,
            report_batch_item_failures=True,
        )
        acknowledge(
            mapping,
            "Serverless::Serverless-LambdaEventSourceMappingDestination",
            "Queues have no such destination: what fails comes again, and goes to the queue of dead letters at last.",
        )

    def _sweep(self) -> None:
        """Have the function look for work that a crash left. A failed sweep waits for the next."""
        every = Duration.minutes(self._knowledge.sweep_minutes)
        event = RuleTargetInput.from_object({"sweep": True})
        target = LambdaFunction(self.index.live, event=event, retry_attempts=0, max_event_age=every)
        rule = Rule(self, "Sweep", schedule=Schedule.rate(every), targets=[target])
        acknowledge(
            rule,
            "Serverless::Serverless-EventBusDLQ",
            "An event that is lost is replaced by the next one, and holds nothing.",
        )
