"""Knowledge that documents can be brought to: uploads, a queue, and the function that indexes."""

import aws_cdk as cdk
from aws_cdk.aws_iam import Role
from constructs import Construct

from infra.artifacts import Artifacts
from infra.constructs.function import PythonFunction
from infra.constructs.index_queue import IndexQueue
from infra.constructs.key_use import let_use
from infra.constructs.knowledge import Knowledge
from infra.constructs.layers import Layers
from infra.constructs.logs import log_group
from infra.constructs.placement import Placement
from infra.constructs.servers import Servers
from infra.constructs.triggers import process, sweep
from infra.constructs.uploads import UploadBucket
from infra.environments.knowledge import Writable
from infra.environments.model import Environment
from infra.stacks.base import EnvironmentStack

# The only folder that a function may write to. Nothing of a store is there.
_HOME = "/tmp/cragside"  # noqa: S108
_ORIGINS = "RAG_ALLOW_ORIGINS"


class KnowledgeStack(EnvironmentStack):
    """Outputs: the names of `UploadBucket` and `IndexFunction`, and the URLs of `TaskQueue` and `DeadLetters`."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        environment: Environment,
        knowledge: Writable,
        artifacts: Artifacts,
        servers: Servers,
        placement: Placement | None,
    ) -> None:
        super().__init__(scope, name, environment, f"knowledge that documents can be brought to ({environment.name})")
        keep, key = environment.keep_data, self._key
        self._knowledge = knowledge
        origins = [each.strip() for each in environment.settings.get(_ORIGINS, "").split(",") if each.strip()]
        self.uploads = UploadBucket(self, "Uploads", origins=origins, key=key)
        self.queue = IndexQueue(
            self,
            "Queue",
            visibility_seconds=knowledge.visibility_seconds,
            key=key,
            keep=keep,
        )
        layers = Layers(self, "Layers", artifacts.of_indexing, environment.python, environment.architecture)
        self.index = PythonFunction(
            self,
            "Index",
            code=artifacts.index,
            layers=layers.versions,
            python=environment.python,
            architecture=environment.architecture,
            memory_mb=knowledge.index_memory_mb,
            timeout_seconds=knowledge.index_timeout_seconds,
            variables={**environment.settings, **servers.variables, **self._variables},
            logs=log_group(self, "IndexLogs", environment.log_retention_days, keep=keep, key=key),
            reserved_concurrency=None,  # what the queue may start is bounded below
            snap_start=environment.snap_start,
            placement=placement,
        )
        servers.grant_read(self.index.role)
        self.queue.grant_processing(self.index.role)
        self._grant_key(self.index.role, "sqs", "secretsmanager")
        process(self, "Tasks", self.index.live, self.queue.tasks, at_once=knowledge.index_concurrency)
        sweep(self, "Sweep", self.index.live, minutes=knowledge.sweep_minutes)
        name = self.index.function.function_name
        cdk.CfnOutput(self, "IndexFunction", value=name, description="The function that indexes; its alias is live.")
        cdk.CfnOutput(self, "UploadBucket", value=self.uploads.bucket_name, description="The bucket of large files.")
        cdk.CfnOutput(self, "TaskQueue", value=self.queue.tasks.queue_url, description="The queue that calls it.")
        cdk.CfnOutput(self, "DeadLetters", value=self.queue.dead.queue_url, description="Messages that came too often.")

    @property
    def for_requests(self) -> Knowledge:
        """Resources beside the servers that functions need to store documents and answer from them."""
        return Knowledge({**self._variables, **self.uploads.variables}, grant_read=self._grant)

    @property
    def _variables(self) -> dict[str, str]:
        pool, attempts = str(self._knowledge.pool), str(self._knowledge.attempts)
        return {
            "RAG_HOME": _HOME,
            "RAG_POSTGRES_CONNECTIONS": pool,
            "RAG_NEO4J_CONNECTIONS": pool,
            "RAG_INDEX_ATTEMPTS": attempts,
            "RAG_FETCH_PAGES": str(self._knowledge.fetch_pages).lower(),
            **self.queue.variables,
        }

    def _grant(self, role: Role) -> None:
        self.uploads.grant(role)
        self.queue.grant_queueing(role)
        self._grant_key(role, "sqs", "s3")

    def _grant_key(self, role: Role, *services: str) -> None:
        """Let a function use the operator's key for what these services hold."""
        if self._key is not None:
            let_use(role, self._key, ["kms:Decrypt", "kms:GenerateDataKey"], through=services)
