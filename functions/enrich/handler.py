"""API Gateway -> cragside's routes, through Mangum; configured by the environment (docs/lambda.md)."""

from cragside.entrypoints.aws_lambda.function import start

handler = start()
