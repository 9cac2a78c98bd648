"""The dashboard of a deployment."""

from collections.abc import Sequence

from aws_cdk import Duration
from aws_cdk.aws_cloudwatch import Alarm, AlarmStatusWidget, Dashboard, GraphWidget, IMetric, IWidget
from constructs import Construct

from infra.constructs.watched import Watched

_VERDICTS = ("Local", "Web", "Mixed", "None")
_COMPONENTS = ("KnowledgeBase", "Search", "Grader", "Rewriter", "Conversation", "Memory", "Settings")


def dashboard(scope: Construct, name: str, *, watched: Watched, alarms: Sequence[Alarm]) -> Dashboard:
    """Alarms, requests, latency, functions, evidence, and the queue if there is one."""
    board = Dashboard(scope, name, default_interval=Duration.hours(12))
    board.add_widgets(AlarmStatusWidget(title="Alarms", alarms=list(alarms), width=24))
    board.add_widgets(
        _graph("Requests", watched.requests(), watched.failed_requests()),
        _graph("Milliseconds", *(watched.latency(each) for each in ("p50", "p95", "p99"))),
        _graph("Verdicts", *(watched.own(f"Verdict{each}") for each in _VERDICTS)),
        _graph("Degraded", watched.own("Degraded"), *(watched.own(f"Degraded{each}") for each in _COMPONENTS)),
    )
    functions = watched.functions.items()
    board.add_widgets(
        *(
            _graph(kind, watched.invocations(each), watched.errors(each), watched.throttles(each))
            for kind, each in functions
        ),
        *(_graph(f"{kind}: milliseconds", each.metric_duration(statistic="p95")) for kind, each in functions),
        _graph("Secrets", *(watched.own("SecretUnreadable", each) for _, each in functions)),
    )
    if watched.tasks is not None:
        board.add_widgets(
            _graph("Messages about tasks", watched.tasks.metric_approximate_number_of_messages_visible()),
            _graph("Age of the oldest message, s", watched.tasks.metric_approximate_age_of_oldest_message()),
            _graph("Tasks given up", watched.own("GivenUp", watched.index)),
        )
    return board


def _graph(title: str, *metrics: IMetric) -> IWidget:
    return GraphWidget(title=title, left=list(metrics), width=6)
