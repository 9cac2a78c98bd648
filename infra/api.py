"""The API in front of a function: HTTP, REST or private, with its token, its web ACL and its canary."""

import json
from typing import Any, cast

from aws_cdk import Arn, ArnComponents, Duration
from aws_cdk import aws_apigateway as rest
from aws_cdk import aws_apigatewayv2 as http
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer, HttpJwtAuthorizer
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from aws_cdk.aws_certificatemanager import Certificate
from aws_cdk.aws_cloudwatch import Alarm, ComparisonOperator, IMetric, MathExpression, Metric, TreatMissingData
from aws_cdk.aws_codedeploy import LambdaDeploymentConfig, LambdaDeploymentGroup
from aws_cdk.aws_ec2 import InterfaceVpcEndpoint
from aws_cdk.aws_iam import AnyPrincipal, Effect, PolicyDocument, PolicyStatement
from aws_cdk.aws_lambda import Alias
from aws_cdk.aws_logs import ILogGroup
from aws_cdk.aws_secretsmanager import Secret, SecretStringGenerator
from aws_cdk.aws_wafv2 import CfnWebACLAssociation
from constructs import Construct

from infra.config import Authorisation, Domain, Jwt
from infra.function import PythonFunction
from infra.stack import EnvironmentStack, acknowledge

_INTEGRATION = Duration.seconds(29)
_APIG4 = "AwsSolutions::AwsSolutions-APIG4"
_OPEN = "The application checks the token of every request; /healthz and /ready have to be open."
_PREFLIGHT = "Browsers send no credentials when they ask whether they may send a request."

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


class ApiToken(Construct):
    """The API token: an existing secret, an existing parameter, or a new secret that Secrets Manager fills.

    `arn` names it, which is not secret. The function reads it when a request has to bring it.
    """

    def __init__(self, stack: EnvironmentStack, name: str, function: PythonFunction) -> None:
        super().__init__(stack, name)
        environment = stack.environment_config
        if environment.token_parameter is not None:
            resource = environment.token_parameter.removeprefix("/")
            self.arn = Arn.format(ArnComponents(service="ssm", resource="parameter", resource_name=resource), stack)
            function.allow(["ssm:GetParameter"], [self.arn])
            stack.allow_key(function.role, "ssm")
        else:
            self.arn = environment.token_secret_arn or self._generated(stack)
            # CDK's own grant has DescribeSecret too, which nobody calls.
            function.allow(["secretsmanager:GetSecretValue"], [self.arn])

    def _generated(self, stack: EnvironmentStack) -> str:
        secret = Secret(
            self,
            "Secret",
            description="The token that requests to cragside have to bring.",
            # 43 letters and digits have 256 bits and need no quoting in a header.
            generate_secret_string=SecretStringGenerator(password_length=43, exclude_punctuation=True),
            encryption_key=stack.key,
            removal_policy=stack.removal,
        )
        acknowledge(
            secret,
            "AwsSolutions::AwsSolutions-SMG4",
            "Clients hold the token too: a rotation that does not hand it to them would lock them out.",
        )
        return secret.secret_arn


class HttpEndpoint(Construct):
    """Passes every request to the handler, within limits, and logs it. CORS is left to the application.

    With an authoriser, only authorised requests pass, and those in which browsers ask whether they may. With a domain,
    `target` is what its DNS record has to name, and the API answers under no other name.
    """

    def __init__(self, stack: EnvironmentStack, name: str, *, handler: Alias, logs: ILogGroup) -> None:
        super().__init__(stack, name)
        environment = stack.environment_config
        operations, throttle = environment.operations, environment.fitting_throttle
        self.api = http.HttpApi(
            self,
            "Api",
            api_name=stack.node.id,
            create_default_stage=False,
            disable_execute_api_endpoint=True if operations.domain else None,
        )
        integration = HttpLambdaIntegration("Handler", handler, timeout=_INTEGRATION)
        authoriser = _authoriser(operations.authorisation)

        def route(name: str, key: http.HttpRouteKey, checked_by: http.IHttpRouteAuthorizer | None) -> http.HttpRoute:
            return http.HttpRoute(
                self, name, http_api=self.api, route_key=key, integration=integration, authorizer=checked_by
            )

        # The application also answers unknown paths, so all errors have its envelope.
        everything = route("Everything", http.HttpRouteKey.DEFAULT, authoriser)
        if authoriser is None:
            acknowledge(everything, _APIG4, _OPEN)
        else:
            preflight = route("Preflight", http.HttpRouteKey.with_("/{proxy+}", http.HttpMethod.OPTIONS), None)
            acknowledge(preflight, _APIG4, _PREFLIGHT)
        domain = operations.domain
        named = http.DomainName(self, "Domain", **_named(self, domain)) if domain else None
        stage = http.HttpStage(
            self,
            "Stage",
            http_api=self.api,
            auto_deploy=True,
            domain_mapping=http.DomainMappingOptions(domain_name=named) if named else None,
            throttle=http.ThrottleSettings(rate_limit=throttle.requests_per_second, burst_limit=throttle.burst),
        )
        cast(http.CfnStage, stage.node.default_child).access_log_settings = http.CfnStage.AccessLogSettingsProperty(
            destination_arn=logs.log_group_arn, format=_LINE
        )
        self.url = stage.domain_url if named else stage.url
        self.target = named.regional_domain_name if named else None


class RestEndpoint(Construct):
    """The same as a REST API, which may be private or stand behind a web ACL."""

    def __init__(self, stack: EnvironmentStack, name: str, *, handler: Alias, logs: ILogGroup) -> None:
        super().__init__(stack, name)
        environment = stack.environment_config
        operations, throttle = environment.operations, environment.fitting_throttle
        domain, private = operations.domain, environment.api.vpc_endpoint_ids
        endpoints = [
            InterfaceVpcEndpoint.from_interface_vpc_endpoint_attributes(self, each, vpc_endpoint_id=each, port=443)
            for each in private
        ]
        self.api = rest.RestApi(
            self,
            "Api",
            rest_api_name=stack.node.id,
            cloud_watch_role=False,  # the account has one such role for all its APIs
            endpoint_configuration=rest.EndpointConfiguration(
                types=[rest.EndpointType.PRIVATE if private else rest.EndpointType.REGIONAL],
                vpc_endpoints=endpoints or None,
            ),
            policy=_from_endpoints(private) if private else None,
            disable_execute_api_endpoint=True if domain else None,
            domain_name=rest.DomainNameOptions(**_named(self, domain)) if domain else None,
            binary_media_types=["*/*"],
            deploy_options=rest.StageOptions(
                stage_name="live",
                throttling_rate_limit=throttle.requests_per_second,
                throttling_burst_limit=throttle.burst,
                access_log_destination=rest.LogGroupLogDestination(logs),
                access_log_format=rest.AccessLogFormat.custom(_LINE),
                tracing_enabled=environment.xray,
            ),
        )
        integration = rest.LambdaIntegration(handler, timeout=_INTEGRATION, allow_test_invoke=False)
        checked_by = rest.AuthorizationType.IAM if operations.authorisation == "iam" else rest.AuthorizationType.NONE
        for resource in (self.api.root, self.api.root.add_resource("{proxy+}")):
            resource.add_method("ANY", integration, authorization_type=checked_by)
            if checked_by is rest.AuthorizationType.IAM:
                resource.add_method("OPTIONS", integration, authorization_type=rest.AuthorizationType.NONE)
        self._explain(environment.xray)
        if (acl := environment.api.web_acl_arn) is not None:
            stage = self.api.deployment_stage.stage_arn
            CfnWebACLAssociation(self, "WebAcl", resource_arn=stage, web_acl_arn=acl)
        self.url = f"https://{domain.name}/" if domain else self.api.url
        self.target = self.api.domain_name.domain_name_alias_domain_name if self.api.domain_name else None

    def _explain(self, xray: bool) -> None:
        reasons = {
            _APIG4: f"{_OPEN} With IAM: {_PREFLIGHT}",
            "AwsSolutions::AwsSolutions-COG4": _OPEN,
            "AwsSolutions::AwsSolutions-APIG2": "The application checks requests, and answers with its own errors.",
            "AwsSolutions::AwsSolutions-APIG3": "A web ACL is the operator's choice: api.web_acl_arn.",
            "AwsSolutions::AwsSolutions-APIG6": "The access log has every request; API Gateway's execution log would "
            "have their headers, and with them the token.",
        }
        if not xray:
            reasons["Serverless::Serverless-APIGWXrayEnabled"] = (
                "The environment says xray = false, because each sampled request is billed as a trace."
            )
        for rule, reason in reasons.items():
            acknowledge(self, rule, reason)


Endpoint = HttpEndpoint | RestEndpoint


def _authoriser(authorisation: Authorisation) -> http.IHttpRouteAuthorizer | None:
    if isinstance(authorisation, Jwt):
        return HttpJwtAuthorizer("Jwt", authorisation.issuer, jwt_audience=list(authorisation.audience))
    return HttpIamAuthorizer() if authorisation == "iam" else None


def _named(scope: Construct, domain: Domain) -> dict[str, Any]:
    certificate = Certificate.from_certificate_arn(scope, "Certificate", domain.certificate_arn)
    return {"domain_name": domain.name, "certificate": certificate}


def _from_endpoints(ids: tuple[str, ...]) -> PolicyDocument:
    """Refuse whoever comes by another way, also with credentials that would be enough by themselves."""
    every: dict[str, Any] = {"actions": ["execute-api:Invoke"], "resources": ["execute-api:/*"]}
    every["principals"] = [AnyPrincipal()]
    elsewhere = {"StringNotEquals": {"aws:SourceVpce": list(ids)}}
    denied = PolicyStatement(effect=Effect.DENY, conditions=elsewhere, **every)
    return PolicyDocument(statements=[PolicyStatement(**every), denied])


# A share of few requests says nothing: so many have to fail in a minute before a share counts.
_LEAST_FAILURES = 3
_MINUTE = Duration.minutes(1)


class Canary(Construct):
    """Five minutes with a tenth of the requests; a failing share of them brings the old version back.

    Lambda counts runs of the new version that end without an answer. The API counts answers with 500 and more, of both
    versions: a new one that fails always makes a tenth of them.
    """

    def __init__(self, scope: Construct, name: str, *, live: Alias, endpoint: Endpoint) -> None:
        super().__init__(scope, name)
        new = {
            "FunctionName": live.lambda_.function_name,
            "Resource": f"{live.lambda_.function_name}:{live.alias_name}",
            "ExecutedVersion": live.version.version,
        }
        runs, errors = (
            Metric(namespace="AWS/Lambda", metric_name=each, dimensions_map=new, statistic="Sum", period=_MINUTE)
            for each in ("Invocations", "Errors")
        )
        answers = endpoint.api.metric_count(period=_MINUTE, statistic="Sum")
        failures = endpoint.api.metric_server_error(period=_MINUTE, statistic="Sum")
        group = LambdaDeploymentGroup(
            self,
            "Group",
            alias=live,
            deployment_config=LambdaDeploymentConfig.CANARY_10_PERCENT_5_MINUTES,
            alarms=[self._alarm("Errors", errors, runs, 5), self._alarm("Failures", failures, answers, 2)],
        )
        acknowledge(
            group,
            "AwsSolutions::AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/"
            "AWSCodeDeployRoleForLambdaLimited]",
            "AWS keeps this policy for exactly this: CodeDeploy shifts the traffic of aliases.",
        )

    def _alarm(self, name: str, part: IMetric, whole: IMetric, percent: float) -> Alarm:
        share = MathExpression(
            expression=f"IF(part >= {_LEAST_FAILURES}, 100 * part / whole, 0)",
            using_metrics={"part": part, "whole": whole},
            period=_MINUTE,
            label=f"{name.lower()}, percent",
        )
        return Alarm(
            self,
            name,
            metric=share,
            threshold=percent,
            evaluation_periods=1,
            comparison_operator=ComparisonOperator.GREATER_THAN_THRESHOLD,
            treat_missing_data=TreatMissingData.NOT_BREACHING,
            alarm_description=f"More than {percent:g} % failed while a new version is tried: the old one comes back.",
        )
