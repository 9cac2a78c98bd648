"""The service: one function behind an API, with its layers, its token and its knowledge."""

import aws_cdk as cdk
from constructs import Construct

from infra.api import ApiToken, Canary, Endpoint, HttpEndpoint, RestEndpoint
from infra.artifacts import Artifacts
from infra.config import Environment
from infra.function import Placement, PythonFunction, layers_of
from infra.knowledge import Store, baked_store
from infra.stack import EnvironmentStack

# Lambda accepts events of 6 MB. A body of text at most doubles its length as a string in the event's JSON.
_MOST_BODY_BYTES = 2_900_000


class ServiceStack(EnvironmentStack):
    """Outputs: `Endpoint`, the API's address; `TokenSecret`, the ARN of what holds the token, if it is asked for;
    `DomainTarget`, what a domain's DNS record names.

    `enrich` is the function, `endpoint` the API.
    """

    def __init__(
        self,
        scope: Construct,
        environment: Environment,
        artifacts: Artifacts,
        placement: Placement | None,
        store: Store | None,
    ) -> None:
        super().__init__(scope, "service", environment, f"evidence for Ollama prompts ({environment.name})")
        operations = environment.operations
        store = store or baked_store(self, environment, artifacts)
        self.enrich = PythonFunction(
            self,
            "Enrich",
            code=artifacts.function,
            layers=[*layers_of(self, environment, artifacts.layers), *store.layers],
            memory_mb=environment.memory_mb,
            tmp_mb=environment.tmp_mb,
            timeout_seconds=environment.timeout_seconds,
            variables={"RAG_MAX_BODY_BYTES": str(_MOST_BODY_BYTES), **store.variables},
            reserved_concurrency=environment.reserved_concurrency,
            snap_start=environment.snap_start,
            placement=placement,
        )
        store.grant(self.enrich.role)
        # Secrets of this key, and a baked store. The CDK leaves that to the key's policy.
        self.allow_key(self.enrich.role, "secretsmanager", "s3")
        self.endpoint = self._endpoint()
        if operations.canary:
            Canary(self, "Canary", live=self.enrich.live, endpoint=self.endpoint)
        cdk.CfnOutput(self, "Endpoint", value=self.endpoint.url, description="The address of the API.")
        if operations.authorisation == "token":
            token = ApiToken(self, "Token", self.enrich)
            self.enrich.function.add_environment("RAG_API_TOKEN_SECRET", token.arn)
            cdk.CfnOutput(self, "TokenSecret", value=token.arn, description="What holds the API token.")
        else:
            self.enrich.function.add_environment("RAG_ALLOW_ANONYMOUS", "true")
        if self.endpoint.target is not None:
            description = "What the domain's DNS record names."
            cdk.CfnOutput(self, "DomainTarget", value=self.endpoint.target, description=description)

    def _endpoint(self) -> Endpoint:
        kind = HttpEndpoint if self.environment_config.api.kind == "http" else RestEndpoint
        return kind(self, "Api", handler=self.enrich.live, logs=self.log_group("ApiLogs", vended=True))
