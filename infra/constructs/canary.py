"""A new version of a function, tried on a tenth of the requests first."""

from aws_cdk import Duration
from aws_cdk.aws_cloudwatch import Alarm, ComparisonOperator, TreatMissingData
from aws_cdk.aws_codedeploy import LambdaDeploymentConfig, LambdaDeploymentGroup
from aws_cdk.aws_lambda import Alias
from constructs import Construct

from infra.constructs.exceptions import acknowledge


class Canary(Construct):
    """Five minutes with a tenth of the requests; an error in them brings the old version back.

    `errors` is the alarm that does so.
    """

    def __init__(self, scope: Construct, name: str, *, live: Alias) -> None:
        super().__init__(scope, name)
        self.errors = Alarm(
            self,
            "Errors",
            metric=live.metric_errors(period=Duration.minutes(1), statistic="Sum"),
            threshold=1,
            evaluation_periods=1,
            comparison_operator=ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=TreatMissingData.NOT_BREACHING,
            alarm_description="A function failed while its new version is tried: the old version comes back.",
        )
        group = LambdaDeploymentGroup(
            self,
            "Group",
            alias=live,
            deployment_config=LambdaDeploymentConfig.CANARY_10_PERCENT_5_MINUTES,
            alarms=[self.errors],
        )
        acknowledge(
            group,
            "AwsSolutions::AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/"
            "AWSCodeDeployRoleForLambdaLimited]",
            "AWS keeps this policy for exactly this: CodeDeploy shifts the traffic of aliases.",
        )
