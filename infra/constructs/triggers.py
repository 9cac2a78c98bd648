"""Triggers of a function: the messages of a queue, and a schedule."""

from aws_cdk import Duration
from aws_cdk.aws_events import Rule, RuleTargetInput, Schedule
from aws_cdk.aws_events_targets import LambdaFunction
from aws_cdk.aws_lambda import EventSourceMapping, IFunction
from aws_cdk.aws_sqs import IQueue
from constructs import Construct

from infra.constructs.exceptions import acknowledge

# SQS gives a function at most so many messages of a FIFO queue at once.
_BATCH = 10


def process(scope: Construct, name: str, function: IFunction, queue: IQueue, *, at_once: int) -> EventSourceMapping:
    """Have the function process the queue, at most so many batches at once. Failures are reported one by one."""
    mapping = EventSourceMapping(
        scope,
        name,
        target=function,
        event_source_arn=queue.queue_arn,
        batch_size=_BATCH,
        max_concurrency=at_once,
        report_batch_item_failures=True,
    )
    acknowledge(
        mapping,
        "Serverless::Serverless-LambdaEventSourceMappingDestination",
        "Queues have no such destination: what fails comes again, and goes to the queue of dead letters at last.",
    )
    return mapping


def sweep(scope: Construct, name: str, function: IFunction, *, minutes: int) -> Rule:
    """Have the function look for work that a crash left, every so many minutes. A failed sweep waits for the next."""
    event = RuleTargetInput.from_object({"sweep": True})
    target = LambdaFunction(function, event=event, retry_attempts=0, max_event_age=Duration.minutes(max(1, minutes)))
    rule = Rule(scope, name, schedule=Schedule.rate(Duration.minutes(minutes)), targets=[target])
    acknowledge(
        rule,
        "Serverless::Serverless-EventBusDLQ",
        "An event that is lost is replaced by the next one, and holds nothing.",
    )
    return rule
