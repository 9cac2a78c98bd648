"""Observability: who is told of trouble, alarms, a budget and a dashboard."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import aws_cdk as cdk
from aws_cdk import Aws, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk.aws_budgets import CfnBudget
from aws_cdk.aws_cloudwatch_actions import SnsAction
from aws_cdk.aws_iam import PolicyStatement, ServicePrincipal
from aws_cdk.aws_kms import IKey, Key
from aws_cdk.aws_lambda import Function
from aws_cdk.aws_sns import ITopic, Topic
from aws_cdk.aws_sns_subscriptions import EmailSubscription
from constructs import Construct

from infra.config import Alarms, Environment
from infra.knowledge import KnowledgeStack
from infra.service import ServiceStack
from infra.stack import EnvironmentStack, acknowledge

_PERIOD = Duration.minutes(5)
# What a function sends by itself: docs/lambda.md.
_OWN = "cragside"
_VERDICTS = ("Local", "Web", "Mixed", "None")
_COMPONENTS = ("KnowledgeBase", "Search", "Grader", "Rewriter", "Conversation", "Memory", "Settings")
_PUBLISHERS = ("cloudwatch.amazonaws.com", "budgets.amazonaws.com")
# Alarms with their sections in docs/runbook.md, and the sections of what is no alarm of CloudWatch's.
SECTIONS = {
    "ApiErrors": "api-errors",
    "SlowAnswers": "slow-answers",
    "Throttles": "throttles",
    "Degraded": "degraded-answers",
    "SecretUnreadable": "unreadable-secret",
    "IndexErrors": "index-errors",
    "QueueAge": "old-tasks",
    "DeadLetters": "dead-letters",
    "Budget": "budget",
}
_SUM: dict[str, Any] = {"period": _PERIOD, "statistic": "Sum"}


@dataclass(frozen=True, slots=True)
class Rule:
    """A figure and its limit. A single bad period of five minutes wakes nobody, two of three do, unless `at_once`."""

    name: str
    metric: cloudwatch.IMetric
    limit: float
    says: str
    at_once: bool = False


class ObservabilityStack(EnvironmentStack):
    """Outputs: `TopicArn`, the topic that is told, if there is one, and `DashboardName`, the dashboard's name.

    Without an addressee, alarms show in CloudWatch alone. `basic` has alarms on AWS' own metrics; `full` adds those of
    cragside's metrics, and the dashboard.
    """

    def __init__(
        self, scope: Construct, environment: Environment, service: ServiceStack, knowledge: KnowledgeStack | None
    ) -> None:
        super().__init__(scope, "observability", environment, f"alarms and a dashboard ({environment.name})")
        self._api, self._enrich, self._knowledge = service.endpoint.api, service.enrich.function, knowledge
        self._functions = {"": self._enrich} | ({"Index": knowledge.index.function} if knowledge else {})
        self._full = environment.observability == "full"
        topic, within = self._told(), Construct(self, "Alarms")
        alarms = [self._alarm(within, rule, topic) for rule in self._rules(environment.operations.alarms)]
        if self._full:
            name = self._dashboard(alarms).dashboard_name
            cdk.CfnOutput(self, "DashboardName", value=name, description="The dashboard in CloudWatch.")
        if environment.operations.monthly_budget_usd is not None:
            self._budget(environment.operations.monthly_budget_usd, topic)
        if topic is not None:
            cdk.CfnOutput(self, "TopicArn", value=topic.topic_arn, description="Who is told of alarms.")

    def _rules(self, limits: Alarms) -> Iterator[Rule]:
        api, most = self._api, limits.errors_percent
        failed = _percent(
            api.metric_server_error(**_SUM), api.metric_count(**_SUM), "answers with 500 and more, percent"
        )
        yield Rule("ApiErrors", failed, most, f"More than {most:g} % of the API's answers fail.")
        slow, seconds = api.metric_latency(period=_PERIOD, statistic="p95"), limits.p95_seconds
        yield Rule("SlowAnswers", slow, seconds * 1000, f"A twentieth of all answers takes longer than {seconds:g} s.")
        for suffix, function in self._functions.items():
            refused = f"Lambda refuses to start the function {suffix.lower() or 'enrich'}."
            throttles = function.metric_throttles(**_SUM)
            yield Rule(f"Throttles{suffix}", throttles, limits.throttles, refused, at_once=True)
        if self._knowledge is not None:
            yield from self._indexing_rules(limits, self._knowledge)
        if self._full:
            share = _percent(self._own("Degraded"), self._own("Requests"), "degraded answers, percent")
            description = f"More than {limits.degraded_percent:g} % of the answers lack a component that is configured."
            yield Rule("Degraded", share, limits.degraded_percent, description)
            for suffix, function in self._functions.items():
                description = f"The function {suffix.lower() or 'enrich'} cannot read a secret."
                unreadable = self._own("SecretUnreadable", function)
                yield Rule(f"SecretUnreadable{suffix}", unreadable, 1, description, at_once=True)

    def _indexing_rules(self, limits: Alarms, knowledge: KnowledgeStack) -> Iterator[Rule]:
        index, most, oldest = knowledge.index.function, limits.errors_percent, limits.queue_age_seconds
        errors = _percent(index.metric_errors(**_SUM), index.metric_invocations(**_SUM), "failed runs, percent")
        description = f"More than {most:g} % of the runs of the function index end without a result."
        yield Rule("IndexErrors", errors, most, description)
        age = knowledge.tasks.metric_approximate_age_of_oldest_message(statistic="Maximum")
        yield Rule("QueueAge", age, oldest, f"A task has waited for longer than {oldest} s.")
        given_up = knowledge.dead.metric_approximate_number_of_messages_visible(statistic="Maximum")
        given_up = self._own("GivenUp", index) if self._full else given_up
        yield Rule("DeadLetters", given_up, 1, "Tasks were given up.", at_once=True)

    def _own(self, name: str, function: Function | None = None) -> cloudwatch.Metric:
        """Return a figure that a function, `enrich` by default, sends by itself."""
        dimensions = {"service": _OWN, "function_name": (function or self._enrich).function_name}
        return cloudwatch.Metric(namespace=_OWN, metric_name=name, dimensions_map=dimensions, **_SUM)

    def _alarm(self, scope: Construct, rule: Rule, topic: ITopic | None) -> cloudwatch.Alarm:
        compared = cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD
        if rule.at_once:
            compared = cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
        alarm = cloudwatch.Alarm(
            scope,
            rule.name,
            metric=rule.metric,
            threshold=rule.limit,
            comparison_operator=compared,
            evaluation_periods=1 if rule.at_once else 3,
            datapoints_to_alarm=1 if rule.at_once else 2,
            # Where nothing happens, nothing is wrong.
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            alarm_description=f"{rule.says} What to do: docs/runbook.md#{SECTIONS[rule.name.removesuffix('Index')]}",
        )
        if topic is not None:
            alarm.add_alarm_action(SnsAction(topic))
            alarm.add_ok_action(SnsAction(topic))
        return alarm

    def _dashboard(self, alarms: list[cloudwatch.Alarm]) -> cloudwatch.Dashboard:
        board, api = cloudwatch.Dashboard(self, "Dashboard", default_interval=Duration.hours(12)), self._api
        board.add_widgets(cloudwatch.AlarmStatusWidget(title="Alarms", alarms=alarms, width=24))
        latency = [api.metric_latency(period=_PERIOD, statistic=each) for each in ("p50", "p95", "p99")]
        graphs: dict[str, list[cloudwatch.IMetric]] = {
            "Requests": [api.metric_count(**_SUM), api.metric_server_error(**_SUM)],
            "Milliseconds": [*latency],
            "Verdicts": [self._own(f"Verdict{each}") for each in _VERDICTS],
            "Degraded": [self._own(f"Degraded{each}") for each in ("", *_COMPONENTS)],
        }
        for suffix, each in self._functions.items():
            name = suffix or "Enrich"
            graphs[name] = [each.metric_invocations(**_SUM), each.metric_errors(**_SUM), each.metric_throttles(**_SUM)]
            graphs[f"{name}: milliseconds"] = [each.metric_duration(statistic="p95")]
        graphs["Secrets"] = [self._own("SecretUnreadable", each) for each in self._functions.values()]
        if self._knowledge is not None:
            tasks = self._knowledge.tasks
            graphs["Messages about tasks"] = [tasks.metric_approximate_number_of_messages_visible()]
            graphs["Age of the oldest message, s"] = [tasks.metric_approximate_age_of_oldest_message()]
            graphs["Tasks given up"] = [self._own("GivenUp", self._knowledge.index.function)]
        board.add_widgets(*(cloudwatch.GraphWidget(title=title, left=left, width=6) for title, left in graphs.items()))
        return board

    def _budget(self, usd: int, topic: ITopic | None) -> None:
        """A budget of the whole account, as costs by tag are there only after somebody has activated the tag.

        The topic is told at 80 % of it, and when AWS expects more than all of it.
        """
        told: list[Any] = []
        above = {"comparisonOperator": "GREATER_THAN"}
        if topic is not None:
            told = [
                {
                    "notification": {"notificationType": kind, "threshold": percent, **above},
                    "subscribers": [{"subscriptionType": "SNS", "address": topic.topic_arn}],
                }
                for kind, percent in (("ACTUAL", 80), ("FORECASTED", 100))
            ]
        limit = {"amount": usd, "unit": "USD"}
        budget = {"budgetType": "COST", "timeUnit": "MONTHLY", "budgetLimit": limit}
        CfnBudget(self, "Budget", budget=budget, notifications_with_subscribers=told or None)

    def _told(self) -> ITopic | None:
        """An existing topic, a new one that sends e-mails once the addressee has confirmed the first one, or none."""
        alarms = self.environment_config.operations.alarms
        if alarms.topic_arn is not None:
            return Topic.from_topic_arn(self, "Topic", alarms.topic_arn)
        if alarms.email is None:
            return None
        within = Construct(self, "Told")
        topic = Topic(within, "Topic", master_key=self.key or _key(within), enforce_ssl=True, display_name="cragside")
        topic.add_subscription(EmailSubscription(alarms.email))
        acknowledge(
            topic,
            "Serverless::Serverless-SNSRedrivePolicy",
            "A queue of undelivered e-mails would need somebody who is told of it; alarms show in CloudWatch too.",
        )
        for service in _PUBLISHERS:
            topic.add_to_resource_policy(_publishing(service, ["sns:Publish"], topic.topic_arn))
        return topic


def _key(scope: Construct) -> IKey:
    """CloudWatch cannot use AWS' own key. A given key's policy has to let CloudWatch and AWS Budgets use it."""
    key = Key(scope, "Key", enable_key_rotation=True, description="cragside: what alarms tell")
    for service in _PUBLISHERS:
        key.add_to_resource_policy(_publishing(service, ["kms:Decrypt", "kms:GenerateDataKey*"], "*"))
    return key


def _publishing(service: str, actions: Sequence[str], resource: str) -> PolicyStatement:
    return PolicyStatement(
        principals=[ServicePrincipal(service)],
        actions=list(actions),
        resources=[resource],
        conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
    )


def _percent(part: cloudwatch.IMetric, whole: cloudwatch.IMetric, label: str) -> cloudwatch.MathExpression:
    """Return a share. There is none where nothing happened."""
    return cloudwatch.MathExpression(
        expression="100 * part / whole", using_metrics={"part": part, "whole": whole}, period=_PERIOD, label=label
    )
