"""The service: one function behind an HTTP API, with its layers, its token and its knowledge."""

import aws_cdk as cdk
from constructs import Construct

from infra.artifacts import Artifacts
from infra.constructs.api import HttpEndpoint
from infra.constructs.function import PythonFunction
from infra.constructs.knowledge import Knowledge, bucket_knowledge, layer_knowledge, no_knowledge
from infra.constructs.layers import Layers
from infra.constructs.logs import log_group
from infra.constructs.placement import Placement
from infra.constructs.servers import Servers
from infra.constructs.token import ApiToken
from infra.environments.knowledge import KnowledgeBucket
from infra.environments.model import Environment

# Lambda accepts events of 6 MB. A body of text at most doubles its length as a string in the event's JSON.
_MOST_BODY_BYTES = 2_900_000


class ServiceStack(cdk.Stack):
    """Outputs: `Endpoint`, the API's address, and `TokenSecret`, the ARN of the secret that holds the token."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        environment: Environment,
        artifacts: Artifacts,
        placement: Placement | None,
        servers: Servers,
        writable: Knowledge | None = None,
    ) -> None:
        super().__init__(
            scope,
            name,
            env=cdk.Environment(account=environment.account, region=environment.region),
            description=f"cragside: evidence for Ollama prompts ({environment.name})",
            termination_protection=environment.keep_data,
        )
        days, keep = environment.log_retention_days, environment.keep_data
        token = ApiToken(self, "Token", existing_arn=environment.token_secret_arn, keep=keep)
        layers = Layers(self, "Layers", artifacts.layers, environment.python, environment.architecture)
        if writable is not None:
            knowledge = writable
        elif artifacts.knowledge is not None:
            knowledge = layer_knowledge(self, "Knowledge", artifacts.knowledge)
        elif isinstance(environment.knowledge, KnowledgeBucket):
            knowledge = bucket_knowledge(environment.knowledge.uri, environment.knowledge.sha256)
        else:
            knowledge = no_knowledge()
        enrich = PythonFunction(
            self,
            "Enrich",
            code=artifacts.function,
            layers=[*layers.versions, *knowledge.layers],
            python=environment.python,
            architecture=environment.architecture,
            memory_mb=environment.memory_mb,
            timeout_seconds=environment.timeout_seconds,
            variables={
                "RAG_MAX_BODY_BYTES": str(_MOST_BODY_BYTES),
                **environment.settings,
                **servers.variables,
                **knowledge.variables,
                **token.variables,
            },
            logs=log_group(self, "EnrichLogs", days, keep=keep),
            reserved_concurrency=environment.reserved_concurrency,
            snap_start=environment.snap_start,
            placement=placement,
        )
        token.grant_read(enrich.role)
        knowledge.grant_read(enrich.role)
        servers.grant_read(enrich.role)
        api = HttpEndpoint(
            self,
            "Api",
            handler=enrich.live,
            requests_per_second=environment.throttle.requests_per_second,
            burst=environment.throttle.burst,
            logs=log_group(self, "ApiLogs", days, keep=keep),
        )
        cdk.CfnOutput(self, "Endpoint", value=api.url, description="The address of the API.")
        cdk.CfnOutput(self, "TokenSecret", value=token.arn, description="The secret that holds the API token.")
