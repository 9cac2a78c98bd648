"""A new version of a function, tried on a tenth of the requests first."""

from aws_cdk import Duration
from aws_cdk.aws_cloudwatch import Alarm, ComparisonOperator, IMetric, TreatMissingData
from aws_cdk.aws_codedeploy import LambdaDeploymentConfig, LambdaDeploymentGroup
from aws_cdk.aws_lambda import Alias
from constructs import Construct

from infra.constructs.exceptions import acknowledge
from infra.constructs.watched import own_metric

_MINUTE = Duration.minutes(1)


class Canary(Construct):
    """Five minutes with a tenth of the requests; a failure in them brings the old version back.

    Lambda counts runs that end without an answer. The function itself counts answers with 500 and more.
    """

    def __init__(self, scope: Construct, name: str, *, live: Alias) -> None:
        super().__init__(scope, name)
        metrics = {
            "Errors": live.metric_errors(period=_MINUTE, statistic="Sum"),
            "Failures": own_metric("Failures", live.version.lambda_, period=_MINUTE),
        }
        group = LambdaDeploymentGroup(
            self,
            "Group",
            alias=live,
            deployment_config=LambdaDeploymentConfig.CANARY_10_PERCENT_5_MINUTES,
            alarms=[self._alarm(each, metric) for each, metric in metrics.items()],
        )
        acknowledge(
            group,
            "AwsSolutions::AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/"
            "AWSCodeDeployRoleForLambdaLimited]",
            "AWS keeps this policy for exactly this: CodeDeploy shifts the traffic of aliases.",
        )

    def _alarm(self, name: str, metric: IMetric) -> Alarm:
        return Alarm(
            self,
            name,
            metric=metric,
            threshold=1,
            evaluation_periods=1,
            comparison_operator=ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=TreatMissingData.NOT_BREACHING,
            alarm_description="A function failed while its new version is tried: the old version comes back.",
        )
