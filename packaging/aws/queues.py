"""Makes the queue, its dead-letter queue and a bucket in the stand-in for AWS, at each start of the stand-in."""

import json

import boto3

_FIFO = {"FifoQueue": "true", "ContentBasedDeduplication": "false"}

sqs = boto3.client("sqs")
dead = sqs.create_queue(QueueName="cragside-dead.fifo", Attributes=_FIFO)["QueueUrl"]
arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
# cragside itself gives up after RAG_INDEX_ATTEMPTS; docs/indexing.md says why this is larger.
redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "100"})
sqs.create_queue(QueueName="cragside.fifo", Attributes={**_FIFO, "VisibilityTimeout": "120", "RedrivePolicy": redrive})
boto3.client("s3").create_bucket(Bucket="cragside")
