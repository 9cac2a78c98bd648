"""SQS -> indexing tasks, with partial batch failures; configured by the environment (docs/indexing.md)."""

from cragside.entrypoints.aws_lambda.indexing import start

handler = start()
