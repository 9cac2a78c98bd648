"""Figures in CloudWatch of the API, the functions and the queue."""

from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk.aws_apigatewayv2 import IHttpApi
from aws_cdk.aws_cloudwatch import IMetric, MathExpression, Metric
from aws_cdk.aws_lambda import IFunction
from aws_cdk.aws_sqs import IQueue

_PERIOD = Duration.minutes(5)
# What a function sends by itself: docs/lambda.md.
_OWN = "cragside"


def own_metric(name: str, function: IFunction, *, statistic: str = "Sum", period: Duration = _PERIOD) -> Metric:
    """A figure that a function sends by itself."""
    dimensions = {"service": _OWN, "function_name": function.function_name}
    return Metric(namespace=_OWN, metric_name=name, dimensions_map=dimensions, statistic=statistic, period=period)


@dataclass(frozen=True, slots=True)
class Watched:
    """A deployment. One without a queue indexes nothing."""

    api: IHttpApi
    enrich: IFunction
    index: IFunction | None = None
    tasks: IQueue | None = None

    @property
    def functions(self) -> dict[str, IFunction]:
        """The functions by their names in alarms."""
        return {"Enrich": self.enrich} | ({"Index": self.index} if self.index else {})

    def requests(self) -> Metric:
        """Count the requests that reached the API."""
        return self.api.metric_count(period=_PERIOD, statistic="Sum")

    def failed_requests(self) -> Metric:
        """Count the requests that were answered with 500 and more."""
        return self.api.metric_server_error(period=_PERIOD, statistic="Sum")

    def latency(self, statistic: str) -> Metric:
        """The milliseconds from a request to its answer."""
        return self.api.metric_latency(period=_PERIOD, statistic=statistic)

    def own(self, name: str, function: IFunction | None = None, statistic: str = "Sum") -> Metric:
        """A figure that a function, `enrich` by default, sends by itself."""
        return own_metric(name, function or self.enrich, statistic=statistic)

    def percent(self, part: IMetric, whole: IMetric, label: str) -> MathExpression:
        """A share. There is none where nothing happened."""
        return MathExpression(
            expression="100 * part / whole", using_metrics={"part": part, "whole": whole}, period=_PERIOD, label=label
        )

    def errors(self, function: IFunction) -> Metric:
        """Count the invocations that ended without an answer."""
        return function.metric_errors(period=_PERIOD, statistic="Sum")

    def invocations(self, function: IFunction) -> Metric:
        """Count the invocations."""
        return function.metric_invocations(period=_PERIOD, statistic="Sum")

    def throttles(self, function: IFunction) -> Metric:
        """Count the invocations that Lambda refused."""
        return function.metric_throttles(period=_PERIOD, statistic="Sum")
