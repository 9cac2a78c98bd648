"""Observability: who is told of trouble, alarms, a budget and a dashboard."""

import aws_cdk as cdk
from aws_cdk.aws_sns import Topic
from constructs import Construct

from infra.constructs.alarms import AlarmSet
from infra.constructs.budget import monthly_budget
from infra.constructs.dashboard import dashboard
from infra.constructs.email_topic import EmailTopic
from infra.constructs.watched import Watched
from infra.environments.model import Environment
from infra.stacks.base import EnvironmentStack


class ObservabilityStack(EnvironmentStack):
    """Outputs: `TopicArn`, the topic that is told, if there is one, and `DashboardName`, the dashboard's name.

    Without an addressee, alarms show in CloudWatch alone.
    """

    def __init__(self, scope: Construct, name: str, *, environment: Environment, watched: Watched) -> None:
        super().__init__(scope, name, environment, f"alarms and a dashboard ({environment.name})")
        operations = environment.operations
        limits = operations.alarms
        topic = None
        if limits.topic_arn is not None:
            topic = Topic.from_topic_arn(self, "Topic", limits.topic_arn)
        elif limits.email is not None:
            topic = EmailTopic(self, "Told", email=limits.email, key_arn=operations.kms_key_arn).topic
        alarms = AlarmSet(
            self,
            "Alarms",
            watched=watched,
            errors_percent=limits.errors_percent,
            p95_seconds=limits.p95_seconds,
            throttles=limits.throttles,
            degraded_percent=limits.degraded_percent,
            queue_age_seconds=limits.queue_age_seconds,
            topic=topic,
        ).alarms
        if operations.monthly_budget_usd is not None:
            topic_arn = topic.topic_arn if topic else None
            monthly_budget(self, "Budget", usd=operations.monthly_budget_usd, topic_arn=topic_arn)
        board = dashboard(self, "Dashboard", watched=watched, alarms=alarms)
        cdk.CfnOutput(self, "DashboardName", value=board.dashboard_name, description="The dashboard in CloudWatch.")
        if topic is not None:
            cdk.CfnOutput(self, "TopicArn", value=topic.topic_arn, description="Who is told of alarms.")
