"""The queue of messages that call the function that indexes."""

from collections.abc import Mapping
from typing import Any

from aws_cdk import Duration, RemovalPolicy
from aws_cdk.aws_iam import PolicyStatement, Role
from aws_cdk.aws_kms import IKey
from aws_cdk.aws_sqs import DeadLetterQueue, DeduplicationScope, FifoThroughputLimit, Queue, QueueEncryption
from constructs import Construct

from infra.constructs.exceptions import acknowledge

# The function replaces a message that came eight times, but not while the database is away: docs/indexing.md.
_RECEIVES = 100


class IndexQueue(Construct):
    """A FIFO queue, encrypted, TLS only. Messages that came too often wait in another one for 14 days."""

    def __init__(self, scope: Construct, name: str, *, visibility_seconds: int, key: IKey | None, keep: bool) -> None:
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
            "It is the queue of dead letters itself. Tasks are in the database, and an alarm tells of those given up.",
        )
        self.tasks = Queue(
            self,
            "Tasks",
            visibility_timeout=Duration.seconds(visibility_seconds),
            dead_letter_queue=DeadLetterQueue(queue=self.dead, max_receive_count=_RECEIVES),
            **common,
        )

    @property
    def variables(self) -> Mapping[str, str]:
        """The variable of a function that queues or processes tasks."""
        return {"RAG_QUEUE_URL": self.tasks.queue_url}

    def grant_queueing(self, role: Role) -> None:
        """Let a function's role say that tasks wait."""
        self._allow(role, self.tasks, "SendMessage")

    def grant_processing(self, role: Role) -> None:
        """Let a function's role be called, put messages off, and say that more tasks wait."""
        processing = ("ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "ReceiveMessage", "SendMessage")
        self._allow(role, self.tasks, *processing)

    def _allow(self, role: Role, queue: Queue, *actions: str) -> None:
        named = [f"sqs:{action}" for action in actions]
        role.add_to_policy(PolicyStatement(actions=named, resources=[queue.queue_arn]))
