"""Charges by type of resource. A month without requests gives the fixed costs."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from infra.pricing.functions import function_charges, version_charges
from infra.pricing.month import DAYS, HOURS, Charge, Month
from infra.pricing.servers import group_charges, policy_charges, volume_charges
from infra.pricing.templates import Resource

_GB = 1e9

Rule = Callable[[Resource, Month], Iterable[Charge]]


def each(what: str, price: str) -> Rule:
    """A rule for what is billed by piece and month."""
    return lambda _resource, _month: [Charge(what, price, 1)]


def _nothing(_: Resource, __: Month) -> Iterable[Charge]:
    return ()


def _api(_: Resource, month: Month) -> Iterator[Charge]:
    yield Charge("requests to the API", "http-api", month.requests / 1e6)
    yield Charge("answers that leave AWS", "transfer-out", month.requests * month.usage["answer_bytes"] / _GB)


def _logs(group: Resource, month: Month) -> Iterator[Charge]:
    # Each request writes one line to the API's group, more to the function's, and connections to that of a flow log.
    if any(stage.refers_to(group) for stage in group.beside("AWS::ApiGatewayV2::Stage")):
        written = "access_log_bytes"
    elif any(log.refers_to(group) for log in group.beside("AWS::EC2::FlowLog")):
        written = "flow_log_bytes"
    elif any(function.refers_to(group) for function in group.beside("AWS::Lambda::Function")):
        written = "log_bytes"
    else:
        return
    gigabytes = month.requests * month.usage[written] / _GB
    yield Charge("lines written to logs", "log-ingestion", gigabytes)
    yield Charge("lines kept in logs", "log-storage", gigabytes * group.properties.get("RetentionInDays", 365) / DAYS)


def _alarm(alarm: Resource, _: Month) -> Iterator[Charge]:
    queries = [query for query in alarm.properties.get("Metrics", []) if "MetricStat" in query]
    yield Charge("alarms", "alarm", max(1, len(queries)))


def _queue(queue: Resource, month: Month) -> Iterator[Charge]:
    price = "fifo-queue" if queue.properties.get("FifoQueue") else "queue"
    polls = 0.0
    if any(source.refers_to(queue) for source in queue.beside("AWS::Lambda::EventSourceMapping")):
        polls = month.usage["pollers"] * HOURS * 3600 / 20
    yield Charge("queue", price, (polls + 3 * month.documents) / 1e6)


def _bucket(_: Resource, month: Month) -> Iterator[Charge]:
    yield Charge("files in buckets", "bucket", month.usage["stored_gb"])
    yield Charge("files written", "bucket-writes", month.documents / 1e6)
    yield Charge("files read", "bucket-reads", 2 * month.documents / 1e6)


def _secret(_: Resource, month: Month) -> Iterator[Charge]:
    yield Charge("secrets", "secret", 1)
    yield Charge("reading secrets", "secret-calls", month.usage["environments"] * HOURS * 12 / 1e6)


def _endpoint(endpoint: Resource, _: Month) -> Iterator[Charge]:
    if endpoint.properties.get("VpcEndpointType") == "Interface":
        zones = len(endpoint.properties.get("SubnetIds", [1]))
        yield Charge("interface endpoints", "interface-endpoint", HOURS * zones)


def _topic(_: Resource, month: Month) -> Iterator[Charge]:
    yield Charge("emails of alarms", "emails", month.usage["mails"] / 1e6)


RULES: dict[str, Rule] = {
    "AWS::ApiGatewayV2::Api": _api,
    "AWS::AutoScaling::AutoScalingGroup": group_charges,
    "AWS::CloudWatch::Alarm": _alarm,
    "AWS::CloudWatch::Dashboard": each("dashboards", "dashboard"),
    "AWS::DLM::LifecyclePolicy": policy_charges,
    "AWS::EC2::FlowLog": _nothing,  # by the lines of its log group
    "AWS::EC2::VPCEndpoint": _endpoint,
    "AWS::EC2::Volume": volume_charges,
    "AWS::KMS::Key": each("keys", "key"),
    "AWS::Lambda::EventSourceMapping": _nothing,  # by the requests to its queue
    "AWS::Lambda::Function": function_charges,
    "AWS::Lambda::Version": version_charges,
    "AWS::Logs::LogGroup": _logs,
    "AWS::Route53::HostedZone": each("private zones", "zone"),
    "AWS::S3::Bucket": _bucket,
    "AWS::SNS::Topic": _topic,
    "AWS::SQS::Queue": _queue,
    "AWS::SecretsManager::Secret": _secret,
}


@dataclass(frozen=True, slots=True)
class Bill:
    """Quantities by what is billed and its price."""

    quantities: dict[tuple[str, str], float]


def bill(resources: Iterable[Resource], month: Month) -> Bill:
    """Return the monthly consumption of the resources. Types without a rule are left out."""
    quantities: dict[tuple[str, str], float] = {}
    for resource in resources:
        for charge in RULES.get(resource.type, _nothing)(resource, month):
            key = (charge.what, charge.price)
            quantities[key] = quantities.get(key, 0.0) + charge.quantity
    return Bill(quantities)
