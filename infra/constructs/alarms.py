"""The alarms of a deployment. Each description leads to its section in docs/runbook.md."""

from aws_cdk.aws_cloudwatch import Alarm, ComparisonOperator, IMetric, TreatMissingData
from aws_cdk.aws_cloudwatch_actions import SnsAction
from aws_cdk.aws_sns import ITopic
from constructs import Construct

from infra.constructs.watched import Watched

# Alarms with their sections, and the sections of what is no alarm of CloudWatch's.
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
# A single bad period of five minutes wakes nobody, two of three do.
_PERIODS, _BAD = 3, 2


class AlarmSet(Construct):
    """Alarms on what is watched. Those of the queue are there if it is.

    Where nothing happens, nothing is wrong: missing figures raise no alarm.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        watched: Watched,
        errors_percent: float,
        p95_seconds: float,
        throttles: int,
        degraded_percent: float,
        queue_age_seconds: int,
        topic: ITopic | None,
    ) -> None:
        super().__init__(scope, name)
        self._topic = topic
        self.alarms: list[Alarm] = []
        failed = watched.percent(watched.failed_requests(), watched.requests(), "answers with 500 and more, percent")
        self._rate("ApiErrors", failed, errors_percent, f"More than {errors_percent:g} % of the API's answers fail.")
        description = f"A twentieth of all answers takes longer than {p95_seconds:g} s."
        self._rate("SlowAnswers", watched.latency("p95"), p95_seconds * 1000, description)
        share = watched.percent(watched.own("Degraded"), watched.own("Requests"), "degraded answers, percent")
        description = f"More than {degraded_percent:g} % of the answers lack a component that is configured."
        self._rate("Degraded", share, degraded_percent, description)
        for kind, function in watched.functions.items():
            suffix = "" if kind == "Enrich" else kind
            refused = f"Lambda refuses to start the function {kind.lower()}."
            self._at_once(f"Throttles{suffix}", watched.throttles(function), throttles, refused)
            description = f"The function {kind.lower()} cannot read a secret."
            self._at_once(f"SecretUnreadable{suffix}", watched.own("SecretUnreadable", function), 1, description)
        if watched.index is not None:
            errors, runs = watched.errors(watched.index), watched.invocations(watched.index)
            description = f"More than {errors_percent:g} % of the runs of the function index end without a result."
            self._rate(
                "IndexErrors", watched.percent(errors, runs, "failed runs, percent"), errors_percent, description
            )
            self._at_once("DeadLetters", watched.own("GivenUp", watched.index), 1, "Tasks were given up.")
        if watched.tasks is not None:
            age = watched.tasks.metric_approximate_age_of_oldest_message(statistic="Maximum")
            description = f"A task has waited for longer than {queue_age_seconds} s."
            self._rate("QueueAge", age, queue_age_seconds, description)

    def _rate(self, name: str, metric: IMetric, most: float, description: str) -> None:
        self._alarm(name, metric, most, description, ComparisonOperator.GREATER_THAN_THRESHOLD, _PERIODS, _BAD)

    def _at_once(self, name: str, metric: IMetric, least: float, description: str) -> None:
        self._alarm(name, metric, least, description, ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD, 1, 1)

    def _alarm(
        self,
        name: str,
        metric: IMetric,
        limit: float,
        description: str,
        compared: ComparisonOperator,
        periods: int,
        bad: int,
    ) -> None:
        alarm = Alarm(
            self,
            name,
            metric=metric,
            threshold=limit,
            comparison_operator=compared,
            evaluation_periods=periods,
            datapoints_to_alarm=bad,
            treat_missing_data=TreatMissingData.NOT_BREACHING,
            alarm_description=f"{description} What to do: docs/runbook.md#{SECTIONS[name.removesuffix('Index')]}",
        )
        if self._topic is not None:
            alarm.add_alarm_action(SnsAction(self._topic))
            alarm.add_ok_action(SnsAction(self._topic))
        self.alarms.append(alarm)
