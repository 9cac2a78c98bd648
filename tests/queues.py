"""Queues for tests."""

import json
from typing import Any


def make_fifo(client: Any, *, receives: int = 100) -> str:
    """A FIFO queue of SQS with a dead-letter queue; its URL."""
    fifo = {"FifoQueue": "true"}
    dead = client.create_queue(QueueName="index-dead.fifo", Attributes=fifo)["QueueUrl"]
    arn = client.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": receives})
    url: str = client.create_queue(QueueName="index.fifo", Attributes={**fifo, "RedrivePolicy": policy})["QueueUrl"]
    return url
