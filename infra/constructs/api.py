"""The HTTP API in front of a function."""

import json
from typing import cast

from aws_cdk import Duration
from aws_cdk.aws_apigatewayv2 import CfnStage, HttpApi, HttpRoute, HttpRouteKey, HttpStage, ThrottleSettings
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
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


class HttpEndpoint(Construct):
    """Passes every request to the handler, within limits, and logs it. CORS is disabled."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        handler: IFunction,
        requests_per_second: int,
        burst: int,
        logs: ILogGroup,
    ) -> None:
        super().__init__(scope, name)
        api = HttpApi(self, "Api", api_name=scope.node.id, create_default_stage=False)
        # The application also answers unknown paths, so all errors have its envelope.
        route = HttpRoute(
            self,
            "Everything",
            http_api=api,
            route_key=HttpRouteKey.DEFAULT,
            integration=HttpLambdaIntegration("Handler", handler, timeout=Duration.seconds(_INTEGRATION_SECONDS)),
        )
        stage = HttpStage(
            self,
            "Stage",
            http_api=api,
            auto_deploy=True,
            throttle=ThrottleSettings(rate_limit=requests_per_second, burst_limit=burst),
        )
        cast(CfnStage, stage.node.default_child).access_log_settings = CfnStage.AccessLogSettingsProperty(
            destination_arn=logs.log_group_arn, format=_LINE
        )
        self.url = stage.url
        acknowledge(
            route,
            "AwsSolutions::AwsSolutions-APIG4",
            "The application checks the token of every request, /healthz aside, which has to be open.",
        )
