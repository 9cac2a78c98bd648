"""The HTTP API in front of a function."""

import json
from dataclasses import dataclass
from typing import cast

from aws_cdk import Duration
from aws_cdk.aws_apigatewayv2 import (
    CfnStage,
    DomainMappingOptions,
    DomainName,
    HttpApi,
    HttpMethod,
    HttpRoute,
    HttpRouteKey,
    HttpStage,
    IHttpRouteAuthorizer,
    ThrottleSettings,
)
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from aws_cdk.aws_certificatemanager import Certificate
from aws_cdk.aws_lambda import IFunction
from aws_cdk.aws_logs import ILogGroup
from constructs import Construct

from infra.constructs.exceptions import acknowledge

_INTEGRATION_SECONDS = 29

# One line for each request, without headers, which have the token, and without the body.
_LINE = json.dumps(
    {
        "request": "$context.requestId",
        "time": "$context.requestTime",
        "from": "$context.identity.sourceIp",
        "method": "$context.httpMethod",
        "path": "$context.path",
        "status": "$context.status",
        "bytes": "$context.responseLength",
        "milliseconds": "$context.responseLatency",
        "integration_milliseconds": "$context.integrationLatency",
        "integration_error": "$context.integrationErrorMessage",
    }
)


@dataclass(frozen=True, slots=True)
class Named:
    """A domain's name and its certificate."""

    name: str
    certificate_arn: str


class HttpEndpoint(Construct):
    """Passes every request to the handler, within limits, and logs it. CORS is left to the application.

    With an authoriser, only authorised requests pass, and those in which browsers ask whether they may. With a domain,
    `target` is what its DNS record has to name, and the API answers under no other name.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        handler: IFunction,
        requests_per_second: int,
        burst: int,
        logs: ILogGroup,
        authoriser: IHttpRouteAuthorizer | None = None,
        domain: Named | None = None,
    ) -> None:
        super().__init__(scope, name)
        self.api = HttpApi(
            self,
            "Api",
            api_name=scope.node.id,
            create_default_stage=False,
            disable_execute_api_endpoint=True if domain else None,
        )
        integration = HttpLambdaIntegration("Handler", handler, timeout=Duration.seconds(_INTEGRATION_SECONDS))
        # The application also answers unknown paths, so all errors have its envelope.
        everything = HttpRoute(
            self,
            "Everything",
            http_api=self.api,
            route_key=HttpRouteKey.DEFAULT,
            integration=integration,
            authorizer=authoriser,
        )
        if authoriser is None:
            acknowledge(
                everything,
                "AwsSolutions::AwsSolutions-APIG4",
                "The application checks the token of every request; /healthz and /ready have to be open.",
            )
        else:
            asking = HttpRouteKey.with_("/{proxy+}", HttpMethod.OPTIONS)
            route = HttpRoute(self, "Asking", http_api=self.api, route_key=asking, integration=integration)
            acknowledge(
                route,
                "AwsSolutions::AwsSolutions-APIG4",
                "Browsers send no credentials when they ask whether they may send a request.",
            )
        named = _domain(self, domain) if domain else None
        stage = HttpStage(
            self,
            "Stage",
            http_api=self.api,
            auto_deploy=True,
            domain_mapping=DomainMappingOptions(domain_name=named) if named else None,
            throttle=ThrottleSettings(rate_limit=requests_per_second, burst_limit=burst),
        )
        cast(CfnStage, stage.node.default_child).access_log_settings = CfnStage.AccessLogSettingsProperty(
            destination_arn=logs.log_group_arn, format=_LINE
        )
        self.url = stage.domain_url if named else stage.url
        self.target = named.regional_domain_name if named else None


def _domain(scope: Construct, domain: Named) -> DomainName:
    certificate = Certificate.from_certificate_arn(scope, "Certificate", domain.certificate_arn)
    return DomainName(scope, "Domain", domain_name=domain.name, certificate=certificate)
