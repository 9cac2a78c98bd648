"""The queue of indexing tasks, with its dead letters."""

from collections.abc import Mapping
from typing import Any

from aws_cdk import Duration, RemovalPolicy
from aws_cdk.aws_iam import PolicyStatement, Role
from aws_cdk.aws_kms import IKey
from aws_cdk.aws_sqs import DeadLetterQueue, DeduplicationScope, FifoThroughputLimit, Queue, QueueEncryption
from constructs import Construct

from infra.constructs.exceptions import acknowledge

# An outage counts a tenth of an attempt: docs/indexing.md.
_RECEIVES_OF_AN_ATTEMPT = 10


class IndexQueue(Construct):
    """A FIFO queue, encrypted, TLS only. What is given up waits in another one for 14 days."""

    def __init__(
        self, scope: Construct, name: str, *, visibility_seconds: int, attempts: int, key: IKey | None, keep: bool
    ) -> None:
        super().__init__(scope, name)
        common: dict[str, Any] = {
            "fifo": True,
            "encryption": QueueEncryption.KMS if key else QueueEncryption.SQS_MANAGED,
            "encryption_master_key": key,
            "enforce_ssl": True,
            "retention_period": Duration.days(14),
            "deduplication_scope": DeduplicationScope.MESSAGE_GROUP,
            "fifo_throughput_limit": FifoThroughputLimit.PER_MESSAGE_GROUP_ID,
            "removal_policy": RemovalPolicy.RETAIN if keep else RemovalPolicy.DESTROY,
        }
        self.dead = Queue(self, "Dead", **common)
        acknowledge(
            self.dead,
            "Serverless::Serverless-SQSRedrivePolicy",
            "It is the queue of dead letters itself; its alarm tells of what is in it.",
        )
        most = attempts * _RECEIVES_OF_AN_ATTEMPT + 1
        self.tasks = Queue(
            self,
            "Tasks",
            visibility_timeout=Duration.seconds(visibility_seconds),
            dead_letter_queue=DeadLetterQueue(queue=self.dead, max_receive_count=most),
            **common,
        )

    @property
    def variables(self) -> Mapping[str, str]:
        """The variable of a function that queues or processes tasks."""
        return {"RAG_QUEUE_URL": self.tasks.queue_url}

    def grant_queueing(self, role: Role) -> None:
        """Let a function's role queue tasks, count them, and list and revive dead letters."""
        self._allow(role, self.tasks, "GetQueueAttributes", "SendMessage")
        reading = ("ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "GetQueueUrl", "ReceiveMessage")
        self._allow(role, self.dead, *reading)

    def grant_processing(self, role: Role) -> None:
        """Let a function's role process tasks, queue those that follow, and give tasks up."""
        processing = ("ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "ReceiveMessage", "SendMessage")
        self._allow(role, self.tasks, *processing)
        self._allow(role, self.dead, "GetQueueAttributes", "GetQueueUrl", "SendMessage")

    def _allow(self, role: Role, queue: Queue, *actions: str) -> None:
        named = [f"sqs:{action}" for action in actions]
        role.add_to_policy(PolicyStatement(actions=named, resources=[queue.queue_arn]))
