"""SQS -> indexing tasks, with partial batch failures; configured by the environment (docs/indexing.md)."""

from cragside.entrypoints.aws_lambda.publishing import start

handler = start()
