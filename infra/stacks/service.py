"""The service: one function behind an HTTP API, with its layers, its token and its knowledge."""

import aws_cdk as cdk
from aws_cdk.aws_apigatewayv2 import IHttpRouteAuthorizer
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer, HttpJwtAuthorizer
from constructs import Construct

from infra.artifacts import Artifacts
from infra.constructs.api import HttpEndpoint, Named
from infra.constructs.canary import Canary
from infra.constructs.function import PythonFunction
from infra.constructs.key_use import let_use
from infra.constructs.knowledge import Knowledge, bucket_knowledge, layer_knowledge, no_knowledge
from infra.constructs.layers import Layers
from infra.constructs.logs import log_group
from infra.constructs.placement import Placement
from infra.constructs.servers import Servers
from infra.constructs.token import ApiToken
from infra.environments.knowledge import KnowledgeBucket
from infra.environments.model import Environment
from infra.environments.operations import Authorisation, Jwt
from infra.stacks.base import EnvironmentStack

# Lambda accepts events of 6 MB. A body of text at most doubles its length as a string in the event's JSON.
_MOST_BODY_BYTES = 2_900_000
_AUTHORISED_BY_GATEWAY = {"RAG_ALLOW_ANONYMOUS": "true"}


class ServiceStack(EnvironmentStack):
    """Outputs: `Endpoint`, the API's address; `TokenSecret`, the ARN of the secret with the token, if it is asked for;
    `DomainTarget`, what a domain's DNS record names.

    `enrich` is the function, `api` the API.
    """

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
        super().__init__(scope, name, environment, f"evidence for Ollama prompts ({environment.name})")
        operations = environment.operations
        token = self._token() if operations.authorisation == "token" else None
        knowledge = writable or self._baked(artifacts)
        variables = {
            "RAG_MAX_BODY_BYTES": str(_MOST_BODY_BYTES),
            **environment.settings,
            **servers.variables,
            **knowledge.variables,
            **(token.variables if token else _AUTHORISED_BY_GATEWAY),
        }
        self.enrich = self._function(artifacts, knowledge, variables, placement)
        knowledge.grant_read(self.enrich.role)
        servers.grant_read(self.enrich.role)
        if self._key is not None:
            # Secrets of this key, and a baked store. The CDK leaves that to the key's policy.
            let_use(self.enrich.role, self._key, ["kms:Decrypt"], through=["secretsmanager", "s3"])
        if operations.canary:
            Canary(self, "Canary", live=self.enrich.live)
        self.api = self._api()
        cdk.CfnOutput(self, "Endpoint", value=self.api.url, description="The address of the API.")
        if token is not None:
            token.grant_read(self.enrich.role)
            cdk.CfnOutput(self, "TokenSecret", value=token.arn, description="The secret that holds the API token.")
        if self.api.target is not None:
            description = "What the domain's DNS record names."
            cdk.CfnOutput(self, "DomainTarget", value=self.api.target, description=description)

    def _token(self) -> ApiToken:
        existing, keep = self._environment.token_secret_arn, self._environment.keep_data
        return ApiToken(self, "Token", existing_arn=existing, keep=keep, key=self._key)

    def _baked(self, artifacts: Artifacts) -> Knowledge:
        knowledge = self._environment.knowledge
        if artifacts.knowledge is not None:
            return layer_knowledge(self, "Knowledge", artifacts.knowledge)
        if isinstance(knowledge, KnowledgeBucket):
            return bucket_knowledge(knowledge.uri, knowledge.sha256)
        return no_knowledge()

    def _function(
        self, artifacts: Artifacts, knowledge: Knowledge, variables: dict[str, str], placement: Placement | None
    ) -> PythonFunction:
        environment = self._environment
        layers = Layers(self, "Layers", artifacts.layers, environment.python, environment.architecture)
        return PythonFunction(
            self,
            "Enrich",
            code=artifacts.function,
            layers=[*layers.versions, *knowledge.layers],
            python=environment.python,
            architecture=environment.architecture,
            memory_mb=environment.memory_mb,
            timeout_seconds=environment.timeout_seconds,
            variables=variables,
            logs=log_group(
                self, "EnrichLogs", environment.log_retention_days, keep=environment.keep_data, key=self._key
            ),
            reserved_concurrency=environment.reserved_concurrency,
            snap_start=environment.snap_start,
            placement=placement,
        )

    def _api(self) -> HttpEndpoint:
        environment, domain = self._environment, self._environment.operations.domain
        return HttpEndpoint(
            self,
            "Api",
            handler=self.enrich.live,
            requests_per_second=environment.throttle.requests_per_second,
            burst=environment.throttle.burst,
            logs=log_group(self, "ApiLogs", environment.log_retention_days, keep=environment.keep_data, key=self._key),
            authoriser=_authoriser(environment.operations.authorisation),
            domain=Named(domain.name, domain.certificate_arn) if domain else None,
        )


def _authoriser(authorisation: Authorisation) -> IHttpRouteAuthorizer | None:
    if isinstance(authorisation, Jwt):
        return HttpJwtAuthorizer("Jwt", authorisation.issuer, jwt_audience=list(authorisation.audience))
    return HttpIamAuthorizer() if authorisation == "iam" else None
